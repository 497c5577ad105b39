"""Exactly-once, as the two Python clients see it."""

import sys

import checks
import with_aiokafka
import with_confluent
import with_groups

if __name__ == "__main__":
    with_confluent.run()
    with_aiokafka.run()
    with_groups.run()
    sys.exit(1 if checks.failed else 0)
