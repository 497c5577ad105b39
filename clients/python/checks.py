"""Runs named checks, prints one line for each, and gives every run names of its own."""

import os
import sys
import time
import traceback
import uuid
from contextlib import contextmanager

BOOTSTRAP = os.environ["BOOTSTRAP"]
# The same broker or another one, behind a relay that loses answers (../common/relay.py); None without a relay.
RELAYED = os.environ.get("RELAYED")
# Whether the broker is Apache Kafka, whose own behaviour some expectations go beyond.
KAFKA = os.environ.get("PEER") == "kafka"
RUN = uuid.uuid4().hex[:8]
RECORDS = 20_000
# Kafka looks for timed-out transactions every ten seconds.
ABORT_LIMIT_S = 25

failed = []


def name(what):
    return f"python-{RUN}-{what}"


def check(title, body):
    start = time.monotonic()
    try:
        body()
        print(f"ok {title} ({time.monotonic() - start:.1f} s)", flush=True)
    except BaseException as failure:  # a check that fails must not end the others
        failed.append(title)
        print(f"FAILED {title}: {failure!r}", flush=True)
        traceback.print_exc(file=sys.stdout)


def stricter(title, reason, body):
    """A check that Apache Kafka fails, for the reason given: run on Semel only."""
    if KAFKA:
        print(f"skipped {title}: stricter than Kafka: {reason}", flush=True)
    else:
        check(title, body)


def behind_the_relay(title, body):
    if RELAYED is None:
        print(f"skipped {title}: there is no relay", flush=True)
    else:
        check(title, lambda: body(RELAYED))


def equal(expected, seen, what):
    assert expected == seen, f"{what}: expected {str(expected)[:300]}, saw {str(seen)[:300]}"


def await_condition(condition, limit_s, what):
    """Asks again until the condition holds; for what the broker does in its own time."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {limit_s} s"
        time.sleep(0.05)


def eventually(condition, what):
    """What Kafka does some time after its answer, and Semel before it: awaited there, asserted here."""
    if KAFKA:
        await_condition(condition, 10, what)
    else:
        assert condition(), f"{what}: not yet when the answer was here"


@contextmanager
def raises(expected, what):
    """The block must raise exactly this class, not a subclass."""
    try:
        yield
    except Exception as seen:
        assert type(seen) is expected, f"{what}: expected {expected.__name__}, saw {seen!r}"
        return
    raise AssertionError(f"{what}: expected {expected.__name__}, nothing was raised")


class Expected:
    """What the twelve transactions of one partition leave: every third one is aborted."""

    TRANSACTIONS = [(number, number % 3 == 1, [f"{number}.{i}" for i in range(5)]) for number in range(12)]
    ALL = [value for _, _, values in TRANSACTIONS for value in values]
    COMMITTED = [value for _, abort, values in TRANSACTIONS if not abort for value in values]
