"""Consumers that subscribe: an application in two instances, one killed in the middle, with both libraries."""

import os
import subprocess
import sys
import tempfile
import time

import with_confluent as confluent
from checks import BOOTSTRAP, await_condition, check, equal, name

PARTITIONS, COPIED = 3, 3000
# Members of KIP-848 are taken for dead after 45 s.
TAKE_OVER_S = 90
COPIER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "copier.py")


def run():
    strategies = (("confluent", "range"), ("confluent", "cooperative-sticky"), ("confluent", "consumer"), ("aiokafka", "roundrobin"))
    for library, strategy in strategies:
        title = f"{library}_group_copies_each_record_once_with_an_instance_killed_{strategy.replace('-', '_')}"
        check(title, lambda: copies_each_record_once(library, strategy))


def copies_each_record_once(library, strategy):
    group = name(f"{library}-{strategy}")
    source, target = (confluent.create_topic(f"{library}-{strategy}-{what}", PARTITIONS) for what in ("in", "out"))
    sender = confluent.producer()
    for i in range(COPIED):
        sender.produce(source, str(i), partition=i % PARTITIONS)
    sender.flush(confluent.LIMIT_S)
    with tempfile.TemporaryFile() as output:
        start = lambda instance: subprocess.Popen(
            [sys.executable, "-B", COPIER, library, strategy, BOOTSTRAP, source, target, group, f"{group}-{instance}"],
            stdout=output,
            stderr=output,
        )
        copied = lambda: sum(confluent.end(target, p, confluent.COMMITTED) for p in range(PARTITIONS))
        instances = [start("a"), start("b")]
        try:
            await_condition(lambda: copied() > COPIED / 10, 40, "the copy gets going")
            instances[0].kill()
            instances[0].wait()
            await_condition(lambda: rest(source, group) == 0, TAKE_OVER_S, "one instance takes over from the other")
            equal(None, instances[1].poll(), "the other instance lives")
        except AssertionError:
            output.seek(0)
            print(output.read().decode()[-4000:], flush=True)
            raise
        finally:
            for instance in instances:
                instance.kill()
                instance.wait()
    for p in range(PARTITIONS):
        expected = [str(i) for i in range(p, COPIED, PARTITIONS)]
        equal(expected, read_all(target, p), f"{target}-{p}")


def rest(source, group):
    """Records that the group has not committed yet."""
    reader = confluent.consumer(confluent.COMMITTED, group=group)
    try:
        places = [confluent.TopicPartition(source, p) for p in range(PARTITIONS)]
        committed = reader.committed(places, timeout=confluent.LIMIT_S)
        return COPIED - sum(max(place.offset, 0) for place in committed)
    finally:
        reader.close()


def read_all(topic, partition):
    """Everything that is committed; what the killed instance left open is aborted by its successor or the timeout."""
    deadline = time.monotonic() + 30
    while True:
        values = confluent.read(topic, partition, confluent.COMMITTED) if stable(topic, partition) else None
        if values is not None:
            return values
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.2)


def stable(topic, partition):
    ends = {confluent.end(topic, partition, isolation) for isolation in (confluent.COMMITTED, confluent.UNCOMMITTED)}
    return len(ends) == 1
