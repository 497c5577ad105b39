"""confluent-kafka: librdkafka behind a Python face."""

import functools
import json
import logging
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from checks import (
    ABORT_LIMIT_S,
    BOOTSTRAP,
    RECORDS,
    Expected,
    await_condition,
    behind_the_relay,
    check,
    equal,
    eventually,
    name,
    stricter,
)

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
LIMIT_S = 20
# The library waits up to a second after a lost connection, a lot where every fifth answer is lost.
IMPATIENT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20, "retry.backoff.ms": 20, "retry.backoff.max.ms": 50}
# The library reports each expected fence on its log too.
SILENT = logging.getLogger("librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def run():
    check("confluent_idempotent_produce_to_one_partition", lambda: idempotent_produce(1))
    check("confluent_idempotent_produce_to_three_partitions", lambda: idempotent_produce(3))
    check("confluent_goes_on_after_its_topic_is_made_anew", goes_on_after_its_topic_is_made_anew)
    check("confluent_goes_on_after_a_silence", goes_on_after_a_silence)
    check("confluent_aborts_while_its_first_produce_is_in_flight", aborts_while_its_first_produce_is_in_flight)
    check("confluent_many_transactions_in_a_row", many_transactions_in_a_row)
    check("confluent_topic_made_on_first_use", topic_made_on_first_use)
    check("confluent_every_compression", every_compression)
    check("confluent_transactions_over_three_topics", transactions_over_three_topics)
    check("confluent_fenced_on_send", lambda: fenced_on_send("send", 0))
    check("confluent_fenced_on_send_to_an_untouched_partition", lambda: fenced_on_send("untouched", 1))
    check("confluent_fenced_on_commit", fenced_on_commit)
    check("confluent_fenced_on_send_offsets", fenced_on_send_offsets)
    check("confluent_transaction_times_out", transaction_times_out)
    check("confluent_offsets_in_a_transaction", offsets_in_a_transaction)
    check("confluent_offsets_without_a_transaction", offsets_without_a_transaction)
    stricter(
        "confluent_takeover_in_one_request",
        "it answers CONCURRENT_TRANSACTIONS until the markers are written",
        takeover_in_one_request,
    )
    behind_the_relay("confluent_idempotent_produce_with_lost_answers", idempotent_produce_with_lost_answers)
    behind_the_relay("confluent_transactions_with_lost_answers", transactions_over_three_topics)


def create_topic(what, partitions, bootstrap=BOOTSTRAP):
    topic = name("confluent-" + what)
    admin(bootstrap).create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    return topic


@functools.cache
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)


def producer(settings={}, bootstrap=BOOTSTRAP):
    return Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True} | settings, logger=SILENT)


def transactional_producer(transactional_id, settings={}, bootstrap=BOOTSTRAP):
    return producer({"transactional.id": transactional_id} | settings, bootstrap)


def consumer(isolation, group="unused", bootstrap=BOOTSTRAP):
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,  # demanded by the library; nobody joins
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        },
        logger=SILENT,
    )


def read(topic, partition, isolation, bootstrap=BOOTSTRAP):
    """All values of one partition up to its end as that isolation sees it, by an assigned consumer."""
    if isolation == COMMITTED:
        await_markers(topic, partition, bootstrap)
    reader, values, deadline = consumer(isolation, bootstrap=bootstrap), [], time.monotonic() + LIMIT_S
    reader.assign([TopicPartition(topic, partition, 0)])
    try:
        while time.monotonic() < deadline:
            for message in reader.consume(1000, 0.2):
                if message.error() is None:
                    values.append(message.value().decode())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    return values
                else:
                    raise KafkaException(message.error())
        raise AssertionError(f"{topic}-{partition} {isolation}: no end within {LIMIT_S} s")
    finally:
        reader.close()


def end(topic, partition, isolation, bootstrap=BOOTSTRAP):
    """The last stable offset (read_committed) or the high watermark (read_uncommitted)."""
    reader = consumer(isolation, bootstrap=bootstrap)
    try:
        return reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=LIMIT_S, cached=False)[1]
    finally:
        reader.close()


def await_markers(topic, partition, bootstrap):
    """On Kafka the markers of a commit may come after its answer; here they are there at once."""
    ends = lambda: {end(topic, partition, isolation, bootstrap) for isolation in (COMMITTED, UNCOMMITTED)}
    eventually(lambda: len(ends()) == 1, "all markers written")


def send(to, topic, value, partition=0):
    """Sends one record and waits for its acknowledgement; the error it met, or None."""
    reports = []
    to.produce(topic, value, partition=partition, on_delivery=lambda error, _: reports.append(error))
    to.flush(LIMIT_S)
    return reports[0]


def goes_on_after_its_topic_is_made_anew():
    """S17: told 59, the library takes a new epoch and goes on; on Kafka its old numbers are simply taken."""
    topic, sender = create_topic("anew", 1), producer()
    equal([None, None], [send(sender, topic, value) for value in ("a", "b")], "before")
    admin(BOOTSTRAP).delete_topics([topic])[topic].result()

    def made_again():
        try:
            admin(BOOTSTRAP).create_topics([NewTopic(topic, 1, 1)])[topic].result()
            return True
        except KafkaException:
            return False

    await_condition(made_again, 10, "the topic made anew")
    equal([None, None], [send(sender, topic, value) for value in ("c", "d")], "after")
    equal(["c", "d"], read(topic, 0, UNCOMMITTED), topic)


def aborts_while_its_first_produce_is_in_flight():
    """B86: the abort may overtake or meet the first write; nothing of it is seen, nothing hangs."""
    topic = create_topic("abort-in-flight", 1)
    writer = transactional_producer(topic, {"linger.ms": 0})
    writer.init_transactions(LIMIT_S)
    for number in range(30):
        writer.begin_transaction()
        writer.produce(topic, "aborted", partition=0)
        writer.poll(0)
        writer.abort_transaction(LIMIT_S)
        writer.begin_transaction()
        writer.produce(topic, f"kept {number}", partition=0)
        writer.commit_transaction(LIMIT_S)
    equal([f"kept {number}" for number in range(30)], read(topic, 0, COMMITTED), topic)


def many_transactions_in_a_row():
    """B89: no pause between two transactions, no error in any of them."""
    topic = create_topic("many", 1)
    writer = transactional_producer(topic, {"linger.ms": 0})
    writer.init_transactions(LIMIT_S)
    for number in range(300):
        writer.begin_transaction()
        writer.produce(topic, str(number), partition=0)
        writer.commit_transaction(LIMIT_S)
    equal([str(number) for number in range(300)], read(topic, 0, COMMITTED), topic)


def goes_on_after_a_silence():
    """S16: longer than producer.id.expiration.ms of the server that the suite starts (see ../common/suite.sh)."""
    topic, sender = create_topic("silence", 1), producer()
    equal(None, send(sender, topic, "before"), "before")
    time.sleep(2.5)
    equal(None, send(sender, topic, "after"), "after")
    equal(["before", "after"], read(topic, 0, UNCOMMITTED), topic)


def idempotent_produce(partitions):
    topic, reports = create_topic(f"idempotent-{partitions}", partitions), []
    sender = producer()
    for i in range(RECORDS):
        sender.produce(topic, str(i), partition=i % partitions, on_delivery=lambda error, _: reports.append(error))
        sender.poll(0)
    sender.flush(LIMIT_S)
    equal([None] * RECORDS, reports, "delivery reports")
    for p in range(partitions):
        expected = [str(i) for i in range(p, RECORDS, partitions)]
        equal(expected, read(topic, p, UNCOMMITTED), f"{topic}-{p}")


def idempotent_produce_with_lost_answers(bootstrap):
    """Small batches, so that many answers can get lost, each a duplicate for the broker to recognise."""
    topic, reports = create_topic("lost-answers", 1, bootstrap), []
    sender = producer({"batch.num.messages": 200} | IMPATIENT, bootstrap)
    for i in range(RECORDS):
        sender.produce(topic, str(i), partition=0, on_delivery=lambda error, _: reports.append(error))
        sender.poll(0)
    sender.flush(60)
    equal([None] * RECORDS, reports, "delivery reports")
    equal([str(i) for i in range(RECORDS)], read(topic, 0, UNCOMMITTED, bootstrap), topic)


def topic_made_on_first_use():
    topic = name("confluent-made-on-first-use")
    equal(None, send(producer(), topic, "first"), "the record")
    equal(["first"], read(topic, 0, UNCOMMITTED), topic)


def every_compression():
    for kind in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic, values = create_topic(f"compression-{kind}", 1), [f"{kind} {i}" for i in range(1000)]
        sender = producer({"compression.type": kind})
        for value in values:
            sender.produce(topic, value, partition=0)
        sender.flush(LIMIT_S)
        equal(values, read(topic, 0, UNCOMMITTED), kind)


def transactions_over_three_topics(bootstrap=BOOTSTRAP):
    topics = [create_topic(f"{bootstrap.split(':')[1]}-{which}", 3, bootstrap) for which in "abc"]
    sender = transactional_producer(name("confluent-transactions"), IMPATIENT, bootstrap)
    sender.init_transactions(LIMIT_S)
    for _, abort, values in Expected.TRANSACTIONS:
        sender.begin_transaction()
        for value in values:
            for topic in topics:
                for p in range(3):
                    sender.produce(topic, value, partition=p)
        # What is still in the client's buffer would be dropped by an abort and never reach the log.
        sender.flush(LIMIT_S)
        if abort:
            sender.abort_transaction(LIMIT_S)
        else:
            sender.commit_transaction(LIMIT_S)
    for topic in topics:
        for p in range(3):
            equal(Expected.COMMITTED, read(topic, p, COMMITTED, bootstrap), f"{topic}-{p} {COMMITTED}")
            equal(Expected.ALL, read(topic, p, UNCOMMITTED, bootstrap), f"{topic}-{p} {UNCOMMITTED}")


def fencing_walk(what, zombie_step):
    """A begins and writes, B takes the transactional id over, A tries to go on, B commits: only B is seen."""
    topic = create_topic(what, 2)
    a, b = transactional_producer(name(what)), transactional_producer(name(what))
    a.init_transactions(LIMIT_S)
    a.begin_transaction()
    equal(None, send(a, topic, "of A"), "A's record")
    b.init_transactions(LIMIT_S)
    equal(2, end(topic, 0, COMMITTED), "last stable offset behind A's record and its abort marker")
    zombie_step(a, topic)
    b.begin_transaction()
    equal(None, send(b, topic, "of B"), "B's record")
    b.commit_transaction(LIMIT_S)
    equal(["of B"], read(topic, 0, COMMITTED), COMMITTED)
    equal(["of A", "of B"], read(topic, 0, UNCOMMITTED), UNCOMMITTED)
    equal([], read(topic, 1, UNCOMMITTED), "what the zombie wrote elsewhere")


def assert_fenced(error, what):
    equal(KafkaError._FENCED, error.code(), f"{what}: {error}")
    assert error.fatal(), f"{what}: {error} is not fatal"


def error_of(body):
    try:
        body()
    except KafkaException as failure:
        return failure.args[0]
    raise AssertionError("nothing was raised")


def fenced_on_send(what, partition):
    """Partition 0 is in the zombie's transaction; partition 1 was never written by anyone."""

    def step(zombie, topic):
        # No delivery callback: the library raises a fatal error from flush, and would call it with that pending.
        zombie.produce(topic, "of the zombie", partition=partition)
        assert_fenced(error_of(lambda: zombie.flush(LIMIT_S)), "flush of the refused send")
        assert_fenced(error_of(lambda: zombie.commit_transaction(LIMIT_S)), "commit after the refused send")

    fencing_walk(f"confluent-fenced-{what}", step)


def fenced_on_commit():
    fencing_walk(
        "confluent-fenced-commit",
        lambda zombie, _: assert_fenced(error_of(lambda: zombie.commit_transaction(LIMIT_S)), "commit"),
    )


def fenced_on_send_offsets():
    def step(zombie, topic):
        reader = consumer(COMMITTED, name("confluent-fenced-offsets"))
        send_offsets = lambda: zombie.send_offsets_to_transaction(
            [TopicPartition(topic, 0, 1)], reader.consumer_group_metadata(), LIMIT_S
        )
        assert_fenced(error_of(send_offsets), "send_offsets_to_transaction")
        reader.close()

    fencing_walk("confluent-fenced-offsets", step)


def transaction_times_out():
    topic = create_topic("timeout", 1)
    sender = transactional_producer(name("confluent-timeout"), {"transaction.timeout.ms": 1000})
    sender.init_transactions(LIMIT_S)
    sender.begin_transaction()
    equal(None, send(sender, topic, "too late"), "the record")
    equal(0, end(topic, 0, COMMITTED), "last stable offset while the transaction is open")
    await_condition(lambda: end(topic, 0, COMMITTED) == 2, ABORT_LIMIT_S, "abort by the broker")
    # Requests of version 1 cannot carry the new identity back, so this client is fenced for good.
    assert_fenced(error_of(lambda: sender.commit_transaction(LIMIT_S)), "commit after the timeout")
    equal([], read(topic, 0, COMMITTED), COMMITTED)


def offsets_in_a_transaction():
    topic, group = create_topic("offsets-input", 1), name("confluent-offsets")
    reader = consumer(COMMITTED, group)
    sender = transactional_producer(name("confluent-offsets"))
    sender.init_transactions(LIMIT_S)
    send_offset(sender, reader, topic, 5)
    sender.commit_transaction(LIMIT_S)
    equal(5, committed_offset(reader, topic), "offset after the commit")
    send_offset(sender, reader, topic, 9)
    sender.abort_transaction(LIMIT_S)
    equal(5, committed_offset(reader, topic), "offset after an abort")
    reader.close()


def offsets_without_a_transaction():
    group = create_topic("plain-offsets", 1)
    reader = consumer(COMMITTED, group)
    for offset in (3, 2):
        reader.commit(offsets=[TopicPartition(group, 0, offset)], asynchronous=False)
        equal(offset, committed_offset(reader, group), "committed offset")
    reader.close()


def send_offset(sender, reader, topic, offset):
    sender.begin_transaction()
    sender.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], reader.consumer_group_metadata(), LIMIT_S)


def committed_offset(reader, topic):
    return reader.committed([TopicPartition(topic, 0)], LIMIT_S)[0].offset


def takeover_in_one_request():
    fastest_ms = min(takeover(attempt) for attempt in range(3))
    assert fastest_ms < 100, f"the fastest of three takeovers took {fastest_ms:.0f} ms"


def takeover(attempt):
    """One takeover over an open transaction, in milliseconds."""
    topic, transactional_id, statistics = create_topic(f"takeover-{attempt}", 3), name(f"takeover-{attempt}"), []
    a = transactional_producer(transactional_id)
    a.init_transactions(LIMIT_S)
    a.begin_transaction()
    for p in range(3):
        equal(None, send(a, topic, "of A", p), "A's record")
    b = transactional_producer(
        transactional_id, {"statistics.interval.ms": 100, "stats_cb": lambda text: statistics.append(json.loads(text))}
    )
    start = time.monotonic()
    b.init_transactions(LIMIT_S)
    done = time.monotonic()
    for p in range(3):
        equal(2, end(topic, p, COMMITTED), "last stable offset right after the takeover")
    # Reports made before the takeover was answered may still be queued; their clock (in microseconds) is ours.
    while not statistics or statistics[-1]["ts"] < done * 1e6:
        b.poll(0.1)
    requests = sum(broker["req"]["InitProducerId"] for broker in statistics[-1]["brokers"].values())
    equal(1, requests, "InitProducerId requests of the takeover")
    return (done - start) * 1000
