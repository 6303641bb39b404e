#!/usr/bin/env python3
"""How far the iterations of a run repeat each other, message by message: what a simulator could take from memory at most.

    pathweave run SCENARIO --flows-csv flows.csv --quiet
    repeats.py flows.csv

An iteration is a job; it is compared with those before it that have the same messages. A step is what all ranks do as their n-th message to a peer within an iteration. An iteration or a step
repeats an earlier one if all of its messages take as long, and begin as long after its first one, to the picosecond. That is
necessary for the states at their starts to be equal, and not sufficient. Steps are compared with all earlier ones of the same
messages, within an iteration and before it.

docs/flow-fidelity.md has results.
"""

import csv
import sys
from collections import defaultdict

Message = tuple[int, int, int]


def read(path: str) -> dict[int, list[tuple[Message, int, int]]]:
    """By job: (sender, receiver, bytes), start and duration in picoseconds, in the order of flows."""
    jobs = defaultdict(list)
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            start, fct = (round(float(row[name]) * 1000) for name in ("start_ns", "fct_ns"))
            message = (int(row["src_host"]), int(row["dst_host"]), int(row["size_bytes"]))
            jobs[int(row["job"])].append((message, start, fct))
    return jobs


def since_first(part: list[tuple[Message, int, int]]) -> list[tuple[Message, int, int]]:
    """The same with starts since the first of them, ordered by message and start."""
    first = min(start for _, start, _ in part)
    return sorted((message, start - first, fct) for message, start, fct in part)


def steps(iteration: list[tuple[Message, int, int]]) -> list[list[tuple[Message, int, int]]]:
    """The messages of an iteration by how many messages of their sender to their receiver came before."""
    by_number = defaultdict(list)
    sent = defaultdict(int)
    for message, start, fct in sorted(iteration, key=lambda flow: flow[1]):
        number = sent[message[:2]]
        sent[message[:2]] += 1
        by_number[number].append((message, start, fct))
    return [since_first(step) for _, step in sorted(by_number.items())]


def seen_before(parts: list) -> int:
    """How many equal one before."""
    seen = set()
    repeated = 0
    for part in parts:
        key = tuple(part)
        repeated += key in seen
        seen.add(key)
    return repeated


def last(iteration: list[tuple[Message, int, int]]) -> int:
    """When the last of its messages ends."""
    return max(start + fct for _, start, fct in iteration)


def percentile(values: list[float], share: float) -> float:
    """By nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * len(ordered) * 1000) // 1000) - 1)]


def main(path: str) -> None:
    # By the messages of an iteration: those of one group of hosts, in order of time.
    rounds = defaultdict(list)
    for flows in sorted(read(path).values(), key=lambda flows: min(start for _, start, _ in flows)):
        rounds[tuple(sorted(message for message, _, _ in flows))].append(since_first(flows))
    iterations = [iteration for group in rounds.values() for iteration in group]
    pairs = [pair for group in rounds.values() for pair in zip(group, group[1:])]
    same = sum(b == c for before, after in pairs for b, c in zip(before, after))
    compared = sum(len(after) for _, after in pairs)
    apart = [
        abs(after_fct - before_fct) / before_fct
        for before, after in pairs
        for (_, _, before_fct), (_, _, after_fct) in zip(before, after)
    ]
    times = [abs(last(after) - last(before)) / last(before) for before, after in pairs]
    all_steps = [step for iteration in iterations for step in steps(iteration)]
    known = len(all_steps) - len({tuple(message for message, _, _ in step) for step in all_steps})
    print(
        f"iterations {seen_before(iterations)} of {len(pairs)}, steps {seen_before(all_steps)} of {known},"
        f" messages {100 * same / compared:.1f} %, durations {100 * apart.count(0) / compared:.1f} %;"
        f" durations apart p50 {100 * percentile(apart, 0.5):.2f} % p99 {100 * percentile(apart, 0.99):.2f} %,"
        f" iterations apart at most {100 * max(times):.3f} %"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
