#!/usr/bin/env python3
"""How far the iterations of a run repeat each other, message by message: what could be taken from memory at most.

    pathweave run SCENARIO --flows-csv flows.csv --quiet
    repeats.py flows.csv

An iteration is a job; it is compared with those before it that have the same messages. A step is what all ranks do as
their n-th message to a peer within an iteration. An iteration or a step repeats an earlier one if each of its
messages takes as long, and begins as long after the first one, to the picosecond. That is necessary for the states at
their starts to be equal, and not sufficient. Steps are compared with all earlier ones of the same messages, within an
iteration and before it.

docs/flow-fidelity.md has results.
"""

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Hashable
from itertools import pairwise

# Sender, receiver, bytes; start and duration in picoseconds.
Flow = tuple[tuple[int, int, int], int, int]


def read(path: str) -> dict[int, list[Flow]]:
    """The messages of each job, in the order of the file."""
    jobs = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            start, fct = (round(float(row[name]) * 1000) for name in ("start_ns", "fct_ns"))
            message = (int(row["src_host"]), int(row["dst_host"]), int(row["size_bytes"]))
            jobs[int(row["job"])].append((message, start, fct))
    return jobs


def since_first(part: list[Flow]) -> tuple[Flow, ...]:
    """The same with starts since the first of them, ordered by message and start."""
    first = min(start for _, start, _ in part)
    return tuple(sorted((message, start - first, fct) for message, start, fct in part))


def steps(iteration: tuple[Flow, ...]) -> list[tuple[Flow, ...]]:
    """The messages of an iteration by how many messages of their sender to their receiver came before."""
    by_number = defaultdict(list)
    sent: dict[tuple[int, int], int] = defaultdict(int)
    for message, start, fct in sorted(iteration, key=lambda flow: flow[1]):
        pair = message[:2]
        by_number[sent[pair]].append((message, start, fct))
        sent[pair] += 1
    return [since_first(step) for _, step in sorted(by_number.items())]


def seen_before(parts: list[tuple[Flow, ...]]) -> int:
    """How many equal one before."""
    return len(parts) - len(set(parts))


def comparable(parts: list[tuple[Flow, ...]]) -> int:
    """How many have the same messages as one before."""
    return len(parts) - len({tuple(message for message, _, _ in part) for part in parts})


def end(iteration: tuple[Flow, ...]) -> int:
    """When the last of its messages ends."""
    return max(start + fct for _, start, fct in iteration)


def percentile(values: list[float], share: float) -> float:
    """By nearest rank."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def main(path: str) -> None:
    """Prints how many iterations and steps repeat earlier ones, and how near the others come."""
    by_messages: dict[Hashable, list[tuple[Flow, ...]]] = defaultdict(list)
    for flows in sorted(read(path).values(), key=lambda flows: min(start for _, start, _ in flows)):
        by_messages[tuple(sorted(message for message, _, _ in flows))].append(since_first(flows))
    iterations = [iteration for alike in by_messages.values() for iteration in alike]
    in_a_row = [pair for alike in by_messages.values() for pair in pairwise(alike)]
    apart = [
        abs(after - before) / before for pair in in_a_row for (_, _, before), (_, _, after) in zip(*pair, strict=True)
    ]
    times = [abs(end(after) - end(before)) / end(before) for before, after in in_a_row]
    all_steps = [step for iteration in iterations for step in steps(iteration)]
    print(
        f"iterations {seen_before(iterations)} of {comparable(iterations)},"
        f" steps {seen_before(all_steps)} of {comparable(all_steps)};"
        f" durations of messages equal {100 * apart.count(0) / len(apart):.1f} %,"
        f" apart p50 {100 * percentile(apart, 0.5):.2f} % p99 {100 * percentile(apart, 0.99):.2f} %;"
        f" times of iterations apart at most {100 * max(times):.3f} %"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
