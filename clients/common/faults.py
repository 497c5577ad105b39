"""A broker and the instances of an application, all of them to be killed, and a reader that watches what comes out.

Everything is killed with SIGKILL. Moments are chosen by progress, which is what a reader of committed records has seen,
never by time. Needs confluent-kafka, which reads with consumers that are assigned their partitions and join no group.
"""

import logging
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

KAFKA = os.environ.get("PEER") == "kafka"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEER_SCRIPT = os.path.join(ROOT, "bench", "peers", "kafka")
LIMIT_S = 60
# Some clients cannot mend the loss of their broker at each moment. One that never comes up ends the run.
ENDS_BY_ITSELF_MAX = 20
# The library reports each expected loss of its connection on its log too.
SILENT = logging.getLogger("librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
# It waits up to ten seconds after a lost connection, which here would hide what happens next.
IMPATIENT = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "topic.metadata.refresh.interval.ms": 5000}


def await_condition(condition, limit_s, what):
    """Asks again until the condition holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {limit_s} s"
        time.sleep(0.01)


def free_port():
    """A port with its next three free as well: Apache Kafka takes four."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
        if 1024 < port < 32_000 and all(is_free(port + i) for i in range(4)):
            return port
        port = 20_000 + int.from_bytes(os.urandom(2), "big") % 12_000
        if all(is_free(port + i) for i in range(4)):
            return port


def is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


class Broker:
    """One broker on one address and one directory, through any number of deaths: Semel, or Apache Kafka with PEER=kafka."""

    def __init__(self, settings):
        self.port = int(os.environ.get("PEER_PORT") or free_port())
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.directory = tempfile.mkdtemp()
        self.log = os.path.join(self.directory, "log")
        self.process = None
        pairs = [f"{key}={value}" for key, value in settings.items()]
        if KAFKA:
            # Kafka looks for timed-out transactions every ten seconds.
            pairs.append("transaction.abort.timed.out.transaction.cleanup.interval.ms=1000")
            subprocess.run([PEER_SCRIPT, "prepare", str(self.port), *pairs], check=True)
            self.command = [PEER_SCRIPT, "exec", str(self.port)]
        else:
            options = [part for pair in pairs for part in ("--set", pair)]
            data = os.path.join(self.directory, "data")
            binary = os.environ["SEMEL_BIN"]
            address = f"127.0.0.1:{self.port}"
            self.command = [binary, "serve", "--data-dir", data, "--listen", address, "--admin", "none", *options]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, start_new_session=True)
        await_condition(self.serves, LIMIT_S, "the broker serves")

    def serves(self):
        assert self.process.poll() is None, f"the broker ended by itself: {self.last_words()}"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def kill_and_restart(self):
        self.kill()
        self.start()

    def stop(self):
        """Ends it as an operator does. Returns its exit status: 0 on Semel if all went well."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S)

    def last_words(self):
        return tail(self.log)

    def discard(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if KAFKA:
            subprocess.run([PEER_SCRIPT, "stop", str(self.port)], check=True)
        shutil.rmtree(self.directory)


class Instance:
    """One process of the application. What it prints is kept; one that ends by itself is started again, and counted."""

    def __init__(self, command, environment, log):
        self.command, self.environment, self.log = command, {**os.environ, **environment}, log
        self.process = None
        self.wanted = False
        self.ended_by_itself = 0

    def start(self):
        self.wanted = True
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdout=log, stderr=log, start_new_session=True)

    def kill(self):
        self.wanted = False
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def look_after(self):
        """As whatever supervises an application does: starts it again if it ended by itself."""
        if self.wanted and self.process.poll() is not None:
            self.ended_by_itself += 1
            assert self.ended_by_itself <= ENDS_BY_ITSELF_MAX, f"an instance ended by itself {self.ended_by_itself} times"
            self.start()

    def last_words(self):
        return tail(self.log)


def tail(path, size=3000):
    with open(path, "rb") as log:
        return log.read()[-size:].decode(errors="replace")


class Watch:
    """Reads the committed records of a topic from its beginning, in a thread, through all deaths of the broker.

    The records of each partition, in the order of their offsets, as (key, value).
    """

    def __init__(self, bootstrap, topic, partitions):
        self.records = [[] for _ in range(partitions)]
        self.reader = consumer(bootstrap, IMPATIENT)
        self.reader.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        self.ended = False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while not self.ended:
            for message in self.reader.consume(1000, 0.02):
                # Errors of the connection pass by themselves; a lost record shows in what was read.
                if message.error() is None:
                    self.records[message.partition()].append(pair(message))

    def count(self):
        return sum(len(records) for records in self.records)

    def end(self):
        self.ended = True
        self.thread.join()
        self.reader.close()


def pair(message):
    key, value = message.key(), message.value()
    return key and key.decode(), value and value.decode()


def consumer(bootstrap, settings={}):
    needed = {"bootstrap.servers": bootstrap, "group.id": "reads-by-assignment", "enable.auto.commit": False}
    more = {"isolation.level": "read_committed", "fetch.wait.max.ms": 50, "auto.offset.reset": "error"}
    return Consumer(needed | more | settings, logger=SILENT)


def create_topic(bootstrap, topic, partitions):
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=SILENT)
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()


def send_all(bootstrap, topic, records):
    """Sends (partition, key, value) in order, once each."""
    sender = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True}, logger=SILENT)
    for partition, key, value in records:
        sender.produce(topic, value, key, partition=partition)
        if len(sender) > 50_000:
            sender.poll(0.1)
    assert sender.flush(LIMIT_S) == 0, f"records for {topic} are left"


def ends(bootstrap, topic, partitions, isolation):
    """Last stable offsets or high watermarks."""
    reader = consumer(bootstrap, {"isolation.level": isolation})
    try:
        places = [TopicPartition(topic, p) for p in range(partitions)]
        return [reader.get_watermark_offsets(place, timeout=LIMIT_S, cached=False)[1] for place in places]
    finally:
        reader.close()


def is_stable(bootstrap, topic, partitions):
    """No transaction is open."""
    isolations = ("read_committed", "read_uncommitted")
    return len({tuple(ends(bootstrap, topic, partitions, isolation)) for isolation in isolations}) == 1


def read_all(bootstrap, topic, partitions):
    """All committed records, by a reader that has seen none of it before; the same form as Watch's."""
    await_condition(lambda: is_stable(bootstrap, topic, partitions), LIMIT_S, f"no transaction is open in {topic}")
    records = [[] for _ in range(partitions)]
    reader = consumer(bootstrap, {"enable.partition.eof": True})
    try:
        reader.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        for message in until_the_end(reader, topic, partitions):
            records[message.partition()].append(pair(message))
        return records
    finally:
        reader.close()


def until_the_end(reader, topic, partitions):
    left, deadline = partitions, time.monotonic() + LIMIT_S
    while left:
        assert time.monotonic() < deadline, f"{topic} is not read to its end within {LIMIT_S} s"
        for message in reader.consume(1000, 0.2):
            if message.error() is None:
                yield message
            elif message.error().code() == KafkaError._PARTITION_EOF:
                left -= 1
            else:
                raise KafkaException(message.error())


def rest(bootstrap, group, topic, partitions):
    """How many committed records the group would still get if it went on from what it has committed."""
    reader = consumer(bootstrap, {"group.id": group, "enable.partition.eof": True, "auto.offset.reset": "earliest"})
    try:
        places = reader.committed([TopicPartition(topic, p) for p in range(partitions)], LIMIT_S)
        reader.assign([TopicPartition(topic, place.partition, max(place.offset, 0)) for place in places])
        return sum(1 for _ in until_the_end(reader, topic, partitions))
    finally:
        reader.close()


class Run:
    """One broker, instances of an application and one who watches its output: begun by whom it belongs to."""

    def __init__(self, settings):
        self.directory = tempfile.mkdtemp()
        self.broker = Broker(settings)
        self.instances, self.watch = [], None

    def show_last_words(self):
        words = {f"instance {i}": instance.last_words() for i, instance in enumerate(self.instances)}
        for who, said in (words | {"broker": self.broker.last_words()}).items():
            print(f"--- last words of {who}\n{said}", flush=True)

    def discard(self):
        if self.watch is not None:
            self.watch.end()
        for instance in self.instances:
            instance.kill()
        self.broker.discard()
        shutil.rmtree(self.directory)


class StoodStill(Exception):
    """No record came out for too long."""


def await_progress(watch, count, still_s, meanwhile):
    """Waits until the reader has seen so many records, doing `meanwhile`; nothing may stand still for longer."""
    seen, since = -1, time.monotonic()
    while watch.count() < count:
        meanwhile()
        if seen != watch.count():
            seen, since = watch.count(), time.monotonic()
        if time.monotonic() - since > still_s:
            raise StoodStill(f"nothing comes out for {still_s} s, after {seen} records")
        time.sleep(0.005)
