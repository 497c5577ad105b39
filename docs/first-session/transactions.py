from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

server = {"bootstrap.servers": "127.0.0.1:9092"}


def instance():
    producer = Producer(server | {"transactional.id": "python-till"})
    producer.init_transactions()
    return producer


first = instance()
first.begin_transaction()
first.produce("python-orders", "one coffee", partition=0)
first.produce("python-orders", "one cake", partition=0)
first.commit_transaction()

first.begin_transaction()
first.produce("python-orders", "a mistake", partition=0)
first.abort_transaction()

first.begin_transaction()
first.produce("python-orders", "too late", partition=0)
first.flush()
second = instance()  # takes over: the open transaction of the first instance is aborted
try:
    first.commit_transaction()
except KafkaException as refused:
    assert refused.args[0].code() == KafkaError._FENCED
    print("the first instance is fenced")

reader = Consumer(
    server
    | {
        "group.id": "python-readers",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
)
reader.assign([TopicPartition("python-orders", 0, 0)])
while (message := reader.poll()).error() is None:
    print(message.offset(), message.value().decode())
assert message.error().code() == KafkaError._PARTITION_EOF
reader.close()
