"""One instance of an application that copies a topic, offsets in the transaction; run by itself, to be killed.

Usage: copier.py LIBRARY BOOTSTRAP INPUT OUTPUT GROUP TRANSACTIONAL_ID STRATEGY
"""

import asyncio
import sys
import time

SESSION_MS = 6000
BATCH = 40
# So that it takes a while: somebody has to be killed in the middle.
PAUSE_S = 0.05


def with_confluent(bootstrap, source, target, group, transactional_id, strategy):
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": strategy,
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 10000})
    producer.init_transactions(20)
    consumer.subscribe([source])
    while True:
        messages = [message for message in consumer.consume(BATCH, 0.2) if message.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(target, message.value(), partition=message.partition())
            time.sleep(PAUSE_S)
            ends = {message.partition(): message.offset() + 1 for message in messages}
            offsets = [TopicPartition(source, partition, end) for partition, end in ends.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 10)
            producer.commit_transaction(10)
        except KafkaException as error:
            print(f"aborts: {error}", flush=True)
            producer.abort_transaction(10)
            for place in consumer.committed(consumer.assignment(), 10):
                consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))


async def with_aiokafka(bootstrap, source, target, group, transactional_id, strategy):
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener

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
            async with producer.transaction():
                for place, records in batches.items():
                    for record in records:
                        await producer.send(target, record.value, partition=place.partition)
                await asyncio.sleep(PAUSE_S)
                offsets = {place: records[-1].offset + 1 for place, records in batches.items()}
                await producer.send_offsets_to_transaction(offsets, group)


if __name__ == "__main__":
    library, arguments = sys.argv[1], sys.argv[2:]
    if library == "confluent":
        with_confluent(*arguments)
    else:
        asyncio.run(with_aiokafka(*arguments))
