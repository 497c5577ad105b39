"""One instance of an application that copies a topic, offsets in the transaction; run by itself, to be killed.

Usage: copier.py LIBRARY STRATEGY BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID; see ../copy/README.md. STRATEGY is one
of librdkafka's, or `consumer` for the newer group protocol. It ends when it meets what an application cannot mend.
"""

import asyncio
import os
import sys
import time

SESSION_MS = int(os.environ.get("SESSION_MS", 6000))
BATCH = int(os.environ.get("BATCH", 40))
# So that it takes a while: somebody has to be killed in the middle.
PAUSE_S = int(os.environ.get("PAUSE_MS", 50)) / 1000
LIMIT_S = 10
# The libraries wait longer after a lost connection, in which an application does nothing.
IMPATIENT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "metadata.recovery.strategy": "none"}


def with_confluent(strategy, bootstrap, source, target, group, transactional_id):
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    membership = {
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 500,
        "partition.assignment.strategy": strategy,
    }
    if strategy == "consumer":
        membership = {"group.protocol": "consumer"}
    consumer = Consumer(
        IMPATIENT
        | membership
        | {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(
        IMPATIENT | {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 10000}
    )

    def insist(call):
        """The library says which errors only want the same call again."""
        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                print(f"again: {error}", flush=True)

    def copy(messages):
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        time.sleep(PAUSE_S)
        ends = {message.partition(): message.offset() + 1 for message in messages}
        offsets = [TopicPartition(source, partition, end) for partition, end in ends.items()]
        who = consumer.consumer_group_metadata()
        insist(lambda: producer.send_offsets_to_transaction(offsets, who, LIMIT_S))
        insist(lambda: producer.commit_transaction(LIMIT_S))

    # The next offset of each partition that this instance has. The library may hand out records that it fetched for an
    # earlier assignment of the same partition: they are copied already, by this instance or another.
    due = {}

    def committed(partitions):
        for place in insist(lambda: consumer.committed(partitions, LIMIT_S)):
            due[place.partition] = max(place.offset, 0)

    def go_back():
        committed(consumer.assignment())
        for place in consumer.assignment():
            consumer.seek(TopicPartition(source, place.partition, due[place.partition]))

    def is_due(message):
        if message.error() is not None or message.offset() != due.get(message.partition()):
            return False
        due[message.partition()] += 1
        return True

    def on_assign(_, partitions):
        committed(partitions)

    def on_revoke(_, partitions):
        for place in partitions:
            due.pop(place.partition, None)

    insist(lambda: producer.init_transactions(LIMIT_S))
    # With a listener partitions change hands only inside of consume(), never while a transaction is under way.
    consumer.subscribe([source], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
    while True:
        messages = [message for message in consumer.consume(BATCH, 0.2) if is_due(message)]
        if not messages:
            continue
        try:
            copy(messages)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            print(f"aborts: {error}", flush=True)
            insist(lambda: producer.abort_transaction(LIMIT_S))
            go_back()


async def with_aiokafka(_strategy, bootstrap, source, target, group, transactional_id):
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
    from aiokafka.errors import KafkaError, ProducerFenced

    one_at_a_time, revocations = asyncio.Lock(), 0

    class Listener(ConsumerRebalanceListener):
        """The library sends offsets without saying who it is: nothing may be under way when partitions change hands."""

        async def on_partitions_revoked(self, revoked):
            nonlocal revocations
            async with one_at_a_time:
                revocations += 1

        async def on_partitions_assigned(self, assigned):
            pass

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=500,
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=10000)

    async def copy(batches):
        async with producer.transaction():
            for place, records in batches.items():
                for record in records:
                    await producer.send(target, record.value, partition=place.partition)
            await asyncio.sleep(PAUSE_S)
            offsets = {place: records[-1].offset + 1 for place, records in batches.items()}
            await producer.send_offsets_to_transaction(offsets, group)

    await producer.start()
    await consumer.start()
    consumer.subscribe([source], listener=Listener())
    while True:
        batches = await consumer.getmany(timeout_ms=200, max_records=BATCH)
        seen = revocations
        async with one_at_a_time:
            # After a revocation reading starts again from what is committed: what is in hand here comes again.
            if not batches or seen != revocations:
                continue
            try:
                await copy(batches)
            except ProducerFenced:
                raise
            except KafkaError as error:
                print(f"aborts: {error!r}", flush=True)
                await consumer.seek_to_committed()


if __name__ == "__main__":
    library, arguments = sys.argv[1], sys.argv[2:]
    if library == "confluent":
        with_confluent(*arguments)
    else:
        asyncio.run(with_aiokafka(*arguments))
