"""What a picker in Python costs: packet-hops per second with the same picker in Rust and in Python, in turns.

Run (make python builds the optimised package): python python/tools/picker_cost.py [rounds]
"""

import statistics
import sys
from collections.abc import Sequence

import pathweave as pw


class RoundRobin(pw.Picker):
    """What `round_robin` of the engine does, from the same random start."""

    def __init__(self, queue_pair: pw.QueuePair) -> None:
        super().__init__(queue_pair)
        self.next = ((queue_pair.seed >> 32) * queue_pair.paths) >> 32

    def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
        """The next of the usable paths."""
        return paths[self.next % len(paths)]

    def on_sent(self, now_ps: int, path: int, packet: pw.Packet) -> None:
        """Goes on with the one after it."""
        self.next = (self.next + 1) % self.queue_pair.paths


class Listening(RoundRobin):
    """The same paths, and it hears of each packet."""

    def on_feedback(self, now_ps: int, feedback: pw.Feedback) -> None:
        """Takes note of nothing."""


def main() -> None:
    """Measures, and prints the medians."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sizes = ["scheme.base='rps'", "scheme.policy.picker='round_robin'", "workload[0].size=256KB"]
    scenario = pw.Scenario.load("scenarios/demo/slow-links.toml").with_(set=sizes)
    kinds = {"round_robin in Rust": None, "pick and on_sent in Python": RoundRobin, "with on_feedback": Listening}
    speeds: dict[str, list[float]] = {name: [] for name in kinds}
    digests = set()
    for _ in range(rounds):
        for name, picker in kinds.items():
            result = pw.run(scenario, picker=picker, threads=1, progress=False)
            run = result.summary["run"]
            digests.add(result.digest)
            speeds[name].append(run["packet_hops"] / run["cpu_s"])
    assert len(digests) == 1, "all of them take the same paths"
    base = statistics.median(speeds["round_robin in Rust"])
    for name, all_of in speeds.items():
        median = statistics.median(all_of)
        spread = f"{min(all_of) / 1e6:.2f} to {max(all_of) / 1e6:.2f}"
        print(f"{name}: {median / 1e6:.2f} M packet-hops per CPU second ({spread}), {median / base:.2f} of Rust")


if __name__ == "__main__":
    main()
