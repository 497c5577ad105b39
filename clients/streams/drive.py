"""Counts words by two instances of a Kafka Streams application, kills one and the broker in the middle, judges each step.

Usage: drive.py PROTOCOL ... -- INSTANCE ...

PROTOCOL is group.protocol: classic or streams. INSTANCE is started with the arguments that Counting.java names.
Prints one line for each check, "ok NAME (...)" or "FAILED NAME: reason".
"""

import os
import sys
import time
import traceback
from collections import defaultdict

import faults

PARTITIONS, WORDS, STEPS = 4, 60, 100
RECORDS = WORDS * STEPS
SOURCE, TARGET, APPLICATION = "words", "word-counts", "counting"
REPARTITION = f"{APPLICATION}-by-word-repartition"
SESSION_MS = 3000
PAUSE_US = 1000
# Nothing may stand still for longer. Kafka needs a quarter of a minute to come back from a kill.
STILL_S = 60
# If nothing too much has come for so long, nothing will.
QUIET_S = 5
# At least once doubles what was not committed when an instance was killed; so often it is tried.
ATTEMPTS = 3


def main():
    protocols, instance = split(sys.argv[1:])
    checks = []
    for protocol in protocols:
        run = lambda guarantee, commit_interval_ms: Run(instance, protocol, guarantee, commit_interval_ms)
        checks.append(check(f"counts_each_step_once_{protocol}", lambda: counts_each_step_once(run)))
        checks.append(check(f"at_least_once_doubles_{protocol}", lambda: at_least_once_doubles(run)))
    return 0 if all(checks) else 1


def split(arguments):
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def check(name, body):
    start = time.monotonic()
    try:
        told = body()
        print(f"ok {name} ({time.monotonic() - start:.1f} s; {told})", flush=True)
        return True
    except Exception as failure:
        print(f"FAILED {name}: {failure!r}", flush=True)
        traceback.print_exc(file=sys.stdout)
        return False


def counts_each_step_once(start):
    run = start("exactly_once_v2", commit_interval_ms=100)
    try:
        run.begin()
        run.await_share(0.15)
        run.instances[0].kill()
        run.await_share(0.3)
        run.broker.kill_and_restart()
        run.await_share(0.45)
        run.instances[0].start()
        run.await_share(0.7)
        run.broker.kill_and_restart()
        assert run.watch.count() < RECORDS, "the count was over before the last kill"
        run.await_share(1)
        output = run.finish()
        wrong = {word: steps for word, steps in output.items() if steps != [str(n) for n in range(1, STEPS + 1)]}
        assert not wrong, f"{len(wrong)} of {len(output)} words are counted wrong: {str(wrong)[:2000]}"
        assert len(output) == WORDS, f"{len(output)} of {WORDS} words are counted"
        faults.await_condition(lambda: run.watch.count() >= RECORDS, STILL_S, "the watching reader has seen everything")
        assert grouped(run.watch.records) == output, "the reader that watched through the kills saw something else"
        return f"{RECORDS} steps of {WORDS} words; 2 kills of the broker, 1 of an instance"
    except Exception:
        run.show_last_words()
        raise
    finally:
        run.discard()


def at_least_once_doubles(start):
    """Without exactly_once_v2 the same application counts twice, so the check above can fail."""
    for attempt in range(1, ATTEMPTS + 1):
        # So long that nothing is committed when the instance is killed.
        run = start("at_least_once", commit_interval_ms=120_000)
        try:
            run.begin()
            run.await_share(0.3)
            run.instances[0].kill()
            run.instances[0].start()
            run.await_share(1)
            # One more than there are words is one too many.
            if run.comes_more():
                return f"attempt {attempt}"
        except Exception:
            run.show_last_words()
            raise
        finally:
            run.discard()
    raise AssertionError(f"no step was written twice in {ATTEMPTS} attempts")


def settings(protocol):
    """Of the newer group protocol the broker says how long a session is."""
    if protocol == "classic":
        return {"group.min.session.timeout.ms": 1000, "group.initial.rebalance.delay.ms": 0}
    newer = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 500}
    if faults.KAFKA:
        newer |= {f"min.{name}": value for name, value in newer.items()}
    return {f"group.streams.{name}": value for name, value in (newer | {"initial.rebalance.delay.ms": 0}).items()}


def grouped(records):
    """The counts of each word in the order in which they were written."""
    steps = defaultdict(list)
    for partition in records:
        for word, count in list(partition):
            steps[word].append(count)
    return steps


class Run(faults.Run):
    def __init__(self, instance, protocol, guarantee, commit_interval_ms):
        self.command = instance
        self.settings = [guarantee, protocol, commit_interval_ms, SESSION_MS, PAUSE_US]
        super().__init__(settings(protocol))

    def begin(self):
        self.broker.start()
        bootstrap = self.broker.bootstrap
        for topic in (SOURCE, TARGET):
            faults.create_topic(bootstrap, topic, PARTITIONS)
        # A word comes in every partition of the source.
        words = [((word + step) % PARTITIONS, None, f"word-{word}") for step in range(STEPS) for word in range(WORDS)]
        faults.send_all(bootstrap, SOURCE, words)
        self.watch = faults.Watch(bootstrap, TARGET, PARTITIONS)
        for i in range(2):
            state = os.path.join(self.directory, f"state-{i}")
            arguments = [bootstrap, APPLICATION, SOURCE, TARGET, state, *self.settings]
            log = os.path.join(self.directory, f"instance-{i}")
            self.instances.append(faults.Instance([*self.command, *map(str, arguments)], {}, log))
            self.instances[i].start()

    def await_share(self, share):
        faults.await_progress(self.watch, share * RECORDS, STILL_S, self.must_live)

    def comes_more(self):
        try:
            faults.await_progress(self.watch, RECORDS + 1, QUIET_S, self.must_live)
            return True
        except faults.StoodStill:
            return False

    def must_live(self):
        for i, instance in enumerate(self.instances):
            assert not instance.wanted or instance.process.poll() is None, f"instance {i} ended by itself"

    def finish(self):
        bootstrap = self.broker.bootstrap
        for topic in (SOURCE, REPARTITION):
            all_read = lambda: faults.rest(bootstrap, APPLICATION, topic, PARTITIONS) == 0
            faults.await_condition(all_read, STILL_S, f"the group has committed all of {topic}")
        for instance in self.instances:
            instance.kill()
        output = faults.read_all(bootstrap, TARGET, PARTITIONS)
        status = self.broker.stop()
        assert faults.KAFKA or status == 0, f"the broker ended with status {status}"
        return grouped(output)



if __name__ == "__main__":
    sys.exit(main())
