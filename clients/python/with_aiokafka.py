"""aiokafka: the asyncio client, which speaks version 0 of every transaction request."""

import asyncio
import logging
import time
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import ProducerFenced

from checks import (
    ABORT_LIMIT_S,
    BOOTSTRAP,
    KAFKA,
    RECORDS,
    Expected,
    behind_the_relay,
    check,
    equal,
    name,
    raises,
)

COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
LIMIT_S = 20
# The library logs every lost answer, and a refused send_offsets_to_transaction leaves a future that nobody awaits.
for noisy in ("aiokafka", "asyncio"):
    logging.getLogger(noisy).setLevel(logging.CRITICAL)


def run():
    for body in (
        idempotent_produce_to_one_partition,
        idempotent_produce_to_three_partitions,
        transactions_over_three_topics,
        fenced_on_send,
        fenced_on_send_to_an_untouched_partition,
        fenced_on_commit,
        fenced_on_send_offsets,
        transaction_times_out,
        offsets_in_a_transaction,
        offsets_without_a_transaction,
    ):
        check(f"aiokafka_{body.__name__}", lambda: asyncio.run(asyncio.wait_for(body(), 60)))
    for body in (idempotent_produce_with_lost_answers, transactions_with_lost_answers):
        title = f"aiokafka_{body.__name__}"
        behind_the_relay(title, lambda relayed: asyncio.run(asyncio.wait_for(body(relayed), 60)))


async def create_topic(what, partitions, bootstrap=BOOTSTRAP):
    topic = name("aiokafka-" + what)
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        await admin.close()
    return topic


@asynccontextmanager
async def producer(bootstrap=BOOTSTRAP, **settings):
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, **settings)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def consumer(isolation, group=None, bootstrap=BOOTSTRAP):
    client = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        isolation_level=isolation,
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


async def read(topic, partition, isolation, bootstrap=BOOTSTRAP):
    """All values of one partition up to its end as that isolation sees it, by an assigned consumer."""
    if isolation == COMMITTED:
        await eventually(lambda: has_all_markers(topic, partition, bootstrap), "all markers written")
    source, values = TopicPartition(topic, partition), []
    async with consumer(isolation, bootstrap=bootstrap) as reader:
        reader.assign([source])
        await reader.seek_to_beginning(source)
        end = (await reader.end_offsets([source]))[source]
        deadline = time.monotonic() + LIMIT_S
        while await reader.position(source) < end:
            assert time.monotonic() < deadline, f"{source} {isolation}: no end within {LIMIT_S} s"
            for records in (await reader.getmany(source, timeout_ms=200)).values():
                values += [record.value.decode() for record in records]
    return values


async def end(topic, partition, isolation, bootstrap=BOOTSTRAP):
    """The last stable offset (read_committed) or the high watermark (read_uncommitted)."""
    source = TopicPartition(topic, partition)
    async with consumer(isolation, bootstrap=bootstrap) as reader:
        return (await reader.end_offsets([source]))[source]


async def has_all_markers(topic, partition, bootstrap):
    stable = await end(topic, partition, COMMITTED, bootstrap)
    return stable == await end(topic, partition, UNCOMMITTED, bootstrap)


async def await_condition(condition, limit_s, what):
    """Asks again until the condition holds; for what the broker does in its own time."""
    deadline = time.monotonic() + limit_s
    while not await condition():
        assert time.monotonic() < deadline, f"{what}: not within {limit_s} s"
        await asyncio.sleep(0.05)


async def eventually(condition, what):
    """What Kafka does some time after its answer, and Semel before it: awaited there, asserted here."""
    if KAFKA:
        await await_condition(condition, 10, what)
    else:
        assert await condition(), f"{what}: not yet when the answer was here"


async def idempotent_produce(partitions):
    topic = await create_topic(f"idempotent-{partitions}", partitions)
    async with producer() as sender:
        sent = [await sender.send(topic, b"%d" % i, partition=i % partitions) for i in range(RECORDS)]
        await asyncio.gather(*sent)
    for p in range(partitions):
        expected = [str(i) for i in range(p, RECORDS, partitions)]
        equal(expected, await read(topic, p, UNCOMMITTED), f"{topic}-{p}")


async def idempotent_produce_to_one_partition():
    await idempotent_produce(1)


async def idempotent_produce_to_three_partitions():
    await idempotent_produce(3)


async def idempotent_produce_with_lost_answers(relayed):
    """Small batches, so that many answers can get lost, each a duplicate for the broker to recognise."""
    topic = await create_topic("lost-answers", 1, relayed)
    async with producer(relayed, max_batch_size=2000) as sender:
        await asyncio.gather(*[await sender.send(topic, b"%d" % i, partition=0) for i in range(RECORDS)])
    equal([str(i) for i in range(RECORDS)], await read(topic, 0, UNCOMMITTED, relayed), topic)


async def transactions_over_three_topics(bootstrap=BOOTSTRAP):
    topics = [await create_topic(f"{bootstrap.split(':')[1]}-{which}", 3, bootstrap) for which in "abc"]
    async with producer(bootstrap, transactional_id=name("aiokafka-transactions")) as sender:
        for _, abort, values in Expected.TRANSACTIONS:
            await sender.begin_transaction()
            sent = [
                await sender.send(topic, value.encode(), partition=p)
                for value in values
                for topic in topics
                for p in range(3)
            ]
            await asyncio.gather(*sent)
            await (sender.abort_transaction() if abort else sender.commit_transaction())
    for topic in topics:
        for p in range(3):
            equal(Expected.COMMITTED, await read(topic, p, COMMITTED, bootstrap), f"{topic}-{p} {COMMITTED}")
            equal(Expected.ALL, await read(topic, p, UNCOMMITTED, bootstrap), f"{topic}-{p} {UNCOMMITTED}")


async def transactions_with_lost_answers(relayed):
    await transactions_over_three_topics(relayed)


async def fencing_walk(what, zombie_step):
    """A begins and writes, B takes the transactional id over, A tries to go on, B commits: only B is seen."""
    topic = await create_topic(what, 2)
    async with producer(transactional_id=topic) as a:
        await a.begin_transaction()
        await a.send_and_wait(topic, b"of A", partition=0)
        async with producer(transactional_id=topic) as b:
            equal(2, await end(topic, 0, COMMITTED), "last stable offset behind A's record and its abort marker")
            await zombie_step(a, topic)
            await b.begin_transaction()
            await b.send_and_wait(topic, b"of B", partition=0)
            await b.commit_transaction()
    equal(["of B"], await read(topic, 0, COMMITTED), COMMITTED)
    equal(["of A", "of B"], await read(topic, 0, UNCOMMITTED), UNCOMMITTED)
    equal([], await read(topic, 1, UNCOMMITTED), "what the zombie wrote elsewhere")


async def fenced_on_send():
    async def step(zombie, topic):
        with raises(ProducerFenced, "send"):
            await zombie.send_and_wait(topic, b"of the zombie", partition=0)

    await fencing_walk("fenced-send", step)


async def fenced_on_send_to_an_untouched_partition():
    async def step(zombie, topic):
        with raises(ProducerFenced, "send"):
            await zombie.send_and_wait(topic, b"of the zombie", partition=1)

    await fencing_walk("fenced-untouched", step)


async def fenced_on_commit():
    async def step(zombie, _):
        with raises(ProducerFenced, "commit"):
            await zombie.commit_transaction()

    await fencing_walk("fenced-commit", step)


async def fenced_on_send_offsets():
    async def step(zombie, topic):
        with raises(ProducerFenced, "send_offsets_to_transaction"):
            await zombie.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic)

    await fencing_walk("fenced-offsets", step)


async def transaction_times_out():
    topic = await create_topic("timeout", 1)
    async with producer(transactional_id=topic, transaction_timeout_ms=1000) as sender:
        await sender.begin_transaction()
        await sender.send_and_wait(topic, b"too late", partition=0)
        equal(0, await end(topic, 0, COMMITTED), "last stable offset while the transaction is open")
        await await_condition(lambda: is_stable_up_to(topic, 2), ABORT_LIMIT_S, "abort by the broker")
        with raises(ProducerFenced, "commit after the timeout"):
            await sender.commit_transaction()
    equal([], await read(topic, 0, COMMITTED), COMMITTED)


async def is_stable_up_to(topic, offset):
    return await end(topic, 0, COMMITTED) == offset


async def offsets_in_a_transaction():
    group = await create_topic("offsets", 1)
    source = TopicPartition(group, 0)
    async with producer(transactional_id=group) as sender, consumer(COMMITTED, group) as reader:
        reader.assign([source])
        await send_offset(sender, group, source, 5)
        await sender.commit_transaction()
        await eventually(lambda: is_committed(reader, source, 5), "offset after the commit")
        await send_offset(sender, group, source, 9)
        await sender.abort_transaction()
        equal(5, await reader.committed(source), "offset after an abort")


async def offsets_without_a_transaction():
    group = await create_topic("plain-offsets", 1)
    source = TopicPartition(group, 0)
    async with consumer(COMMITTED, group) as reader:
        reader.assign([source])
        for offset in (3, 2):
            await reader.commit({source: offset})
            equal(offset, await reader.committed(source), "committed offset")


async def is_committed(reader, source, offset):
    return await reader.committed(source) == offset


async def send_offset(sender, group, source, offset):
    await sender.begin_transaction()
    await sender.send_offsets_to_transaction({source: offset}, group)
