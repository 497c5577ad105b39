"""Copies a topic by three instances of an application, kills them and the broker in the middle, and judges the output.

Usage: drive.py NAME [--records N] [--broker-kills N] [--instance-kills N] [--session-ms N] [--down-ms N] -- COPIER ...

COPIER is started as `COPIER BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID`; README.md says what it has to do.
Prints one line, "ok NAME (...)" or "FAILED NAME: reason".
"""

import argparse
import os
import sys
import time
import traceback
from collections import Counter

import faults

PARTITIONS, INSTANCES = 6, 3
SOURCE, TARGET, GROUP = "copy-source", "copy-target", "copy"
# Nothing may stand still for longer; Kafka needs a quarter of a minute to come back from a kill.
STILL_S = 60


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--broker-kills", type=int, default=5)
    parser.add_argument("--instance-kills", type=int, default=6)
    parser.add_argument("--session-ms", type=int, default=6000)
    # How long a killed broker stays away; longer than a session, and members are no members any more.
    parser.add_argument("--down-ms", type=int, default=0)
    parser.add_argument("copier", nargs="+")
    options = parser.parse_args()
    run, start = Run(options), time.monotonic()
    try:
        told = run.judge()
        print(f"ok {options.name} ({time.monotonic() - start:.1f} s; {told})", flush=True)
    except Exception as failure:
        print(f"FAILED {options.name}: {failure!r}", flush=True)
        traceback.print_exc(file=sys.stdout)
        run.show_last_words()
        return 1
    finally:
        run.discard()
    return 0


class Run(faults.Run):
    def __init__(self, options):
        self.options = options
        super().__init__(settings(options.session_ms))
        self.kills = Counter()

    def judge(self):
        expected = [[str(i) for i in range(p, self.options.records, PARTITIONS)] for p in range(PARTITIONS)]
        self.begin(expected)
        for share, act in plan(self.options.broker_kills, self.options.instance_kills):
            self.await_progress(int(share * self.options.records))
            act(self)
            assert self.watch.count() < self.options.records, "the copy was over before the last kill"
        self.await_progress(self.options.records)
        self.finish(expected)
        by_themselves = sum(instance.ended_by_itself for instance in self.instances)
        return f"{self.kills['broker']} kills of the broker, {self.kills['instance']} of instances, {by_themselves} ended by themselves"

    def begin(self, expected):
        self.broker.start()
        bootstrap = self.broker.bootstrap
        for topic in (SOURCE, TARGET):
            faults.create_topic(bootstrap, topic, PARTITIONS)
        faults.send_all(bootstrap, SOURCE, [(p, None, value) for p in range(PARTITIONS) for value in expected[p]])
        self.watch = faults.Watch(bootstrap, TARGET, PARTITIONS)
        for i in range(INSTANCES):
            command = [*self.options.copier, bootstrap, SOURCE, TARGET, GROUP, f"copy-{i}"]
            log = os.path.join(self.directory, f"instance-{i}")
            environment = {"SESSION_MS": str(self.options.session_ms)}
            self.instances.append(faults.Instance(command, environment, log))
            self.instances[i].start()

    def await_progress(self, count):
        faults.await_progress(self.watch, count, STILL_S, self.look_after)

    def look_after(self):
        for instance in self.instances:
            instance.look_after()

    def finish(self, expected):
        bootstrap = self.broker.bootstrap
        all_read = lambda: faults.rest(bootstrap, GROUP, SOURCE, PARTITIONS) == 0
        faults.await_condition(all_read, STILL_S, "the group has committed all offsets")
        for instance in self.instances:
            instance.kill()
        output = faults.read_all(bootstrap, TARGET, PARTITIONS)
        for p in range(PARTITIONS):
            compare([value for _, value in output[p]], expected[p], f"{TARGET}-{p}")
        # Nothing that was once seen as committed may be gone, or come to another place, by a kill.
        watched = lambda: self.watch.count() >= self.options.records
        faults.await_condition(watched, STILL_S, "the watching reader has seen everything")
        assert self.watch.records == output, "the reader that watched through the kills saw something else"
        status = self.broker.stop()
        assert faults.KAFKA or status == 0, f"the broker ended with status {status}"

    def kill_broker(self):
        self.kills["broker"] += 1
        self.broker.kill()
        time.sleep(self.options.down_ms / 1000)
        self.broker.start()

    def kill_instance(self, which):
        self.kills["instance"] += 1
        self.instances[which].kill()



def settings(session_ms):
    """Of the newer group protocol the broker says how long a session is."""
    newer = {"session.timeout.ms": session_ms, "heartbeat.interval.ms": 500}
    if faults.KAFKA:
        newer |= {f"min.{name}": value for name, value in newer.items()}
    classic = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": min(session_ms, 6000)}
    return classic | {f"group.consumer.{name}": value for name, value in newer.items()}


def plan(broker_kills, instance_kills):
    """(share of the output, what to do), in order: kills in turns; who was killed joins again half a step later."""
    steps = broker_kills + instance_kills
    share = lambda step: 0.05 + 0.75 * step / steps
    acts, brokers_left, instances_left = [], broker_kills, instance_kills
    for step in range(steps):
        if instances_left > brokers_left:
            which = (instance_kills - instances_left) % INSTANCES
            instances_left -= 1
            acts.append((share(step), lambda run, which=which: run.kill_instance(which)))
            acts.append((share(step + 0.5), lambda run, which=which: run.instances[which].start()))
        else:
            brokers_left -= 1
            acts.append((share(step), Run.kill_broker))
    return acts


def compare(seen, expected, where):
    if seen == expected:
        return
    counts = Counter(seen)
    lost = [value for value in expected if value not in counts]
    doubled = [value for value, count in counts.items() if count > 1]
    order = "" if lost or doubled else "; in another order"
    raise AssertionError(f"{where}: {len(lost)} lost ({lost[:10]}), {len(doubled)} doubled ({doubled[:10]}){order}")


if __name__ == "__main__":
    sys.exit(main())
