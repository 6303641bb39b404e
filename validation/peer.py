#!/usr/bin/env python3
"""From a run of pathweave to the input of a peer, and from a peer's output to the `[theirs]` of a case.

    pathweave run validation/scenarios/conweave.toml --flows-csv flows.csv
    peer.py flows conweave flows.csv flow.txt           # or: hpcc
    peer.py flows hpcc flows.csv flow.txt 1008 1000     # as many packets of 1,000 bytes there as of 1,008 here
    peer.py flows laps flows.csv flows.txt 80           # switches there are, whose numbers come first
    peer.py flows htsim flows.csv flows.cm 128          # hosts there are
    peer.py flows htsim flows.csv flows.cm 128 4016 4000  # as many packets of 4,000 bytes there as of 4,016 here
    peer.py figures conweave flows.csv fct.txt      # or: hpcc, htsim, laps

A case with several seeds takes several pairs: flows1.csv fct1.txt flows2.csv fct2.txt; their flows are taken together.
"""

import csv
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

Flow = tuple[int, int, int, float]

# HPCC's and ConWeave's simulators start flows two seconds into their time.
NS3_START_S = 2.0


def read_flows(path: str) -> list[Flow]:
    """(sender, receiver, bytes, start in ns) of each flow, in the order of the file."""
    with open(path, newline="") as file:
        return [
            (int(row["src_host"]), int(row["dst_host"]), int(row["size_bytes"]), float(row["start_ns"]))
            for row in csv.DictReader(file)
        ]


def in_packets(flows: list[Flow], ours: int, theirs: int) -> list[Flow]:
    """As many full packets of `theirs` bytes of payload as the flows have packets of `ours`."""
    return [(src, dst, -(-size // ours) * theirs, start) for src, dst, size, start in flows]


def write_flows(peer: str, flows: list[Flow], out: str, others: int = 0) -> None:
    """Write what a peer reads; `others`: hosts there are (htsim), switches there are (laps)."""
    flows = sorted(flows, key=lambda flow: flow[3])
    with open(out, "w") as file:
        if peer == "htsim":
            file.write(f"Nodes {others}\nConnections {len(flows)}\n")
            for number, (src, dst, size, start_ns) in enumerate(flows):
                file.write(f"{src}->{dst} id {number + 1} start {round(start_ns * 1000)} size {size}\n")
            return
        file.write(f"{len(flows)}\n")
        if peer == "laps":
            for src, dst, size, start_ns in flows:
                file.write(f"{src + others} {dst + others} 3 {size} {start_ns * 1e-9:.9f}\n")
            return
        port = " 100" if peer == "hpcc" else ""
        for src, dst, size, start_ns in flows:
            file.write(f"{src} {dst} 3{port} {size} {NS3_START_S + start_ns * 1e-9:.9f}\n")


def completion_times_us(peer: str, path: str) -> list[float]:
    """Completion times of all flows, microseconds."""
    if peer == "laps":
        # A line a flow of NAME:VALUE. The time is what that code calls LastTimeInNs.
        lines = [dict(word.split(":", 1) for word in line.split()) for line in Path(path).read_text().splitlines()]
        return [int(line["LastTimeInNs"]) * 1e-3 for line in lines if line]
    if peer != "htsim":
        # ns-3: fct.txt, the time in nanoseconds in the last column but one.
        return [int(line.split()[6]) * 1e-3 for line in Path(path).read_text().splitlines() if line.strip()]
    # htsim says when a connection starts ("startflow NAME at T" of RoCE, "Flow NAME ... starting at T" of the others)
    # and when it is done. EQDS does not say when; it is run with flows that start at 0. Of several with one name the
    # first to start is the first to end.
    started: dict[str, list[float]] = {}
    times = []
    for line in Path(path).read_text(errors="replace").splitlines():
        words = line.split()
        if len(words) < 4 or words[0] not in ("Flow", "startflow"):
            continue
        if words[0] == "startflow" or "starting" in words:
            started.setdefault(words[1], []).append(float(words[words.index("at") + 1]))
        elif "finished" in words:
            start = started[words[1]].pop(0) if words[1] in started else 0.0
            times.append(float(words[words.index("at") + 1]) - start)
    return times


def digest(flows: list[Flow]) -> str:
    """As pathweave's: FNV-1a over the sorted triples of sender, receiver and bytes."""
    value = 0xCBF29CE484222325
    for triple in sorted(flow[:3] for flow in flows):
        for byte in struct.pack("<QQQ", *triple):
            value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


def percentile(values: list[float], percent: int) -> float:
    """By nearest rank, of sorted values."""
    return values[max(-(-len(values) * percent // 100), 1) - 1]


def figures(peer: str, pairs: Iterable[tuple[str, str]]) -> None:
    """Print the figures of a case: of each pair, flows of ours and the peer's output."""
    flows: list[Flow] = []
    times: list[float] = []
    for flows_path, output in pairs:
        own = read_flows(flows_path)
        flows += own
        found = completion_times_us(peer, output)
        if len(found) != len(own):
            sys.exit(f"{output}: {len(found)} of {len(own)} flows completed")
        times += found
    times.sort()
    curve = [times[0], *(percentile(times, percent) for percent in range(1, 100)), times[-1]]
    print(f"flows = {len(flows)}")
    print(f'digest = "{digest(flows)}"')
    print(f"mean_us = {sum(times) / len(times):.3f}")
    print("curve_us = [")
    texts = [f"{time:.6g}" for time in curve]
    for at in range(0, len(texts), 10):
        print("    " + ", ".join(t if "." in t else t + ".0" for t in texts[at : at + 10]) + ",")
    print("]")


def main(args: list[str]) -> None:
    """Do what the module says above."""
    match args:
        case ["flows", ("conweave" | "hpcc") as peer, run, out, *payloads] if len(payloads) in (0, 2):
            write_flows(peer, in_packets(read_flows(run), *map(int, payloads or (1, 1))), out)
        case ["flows", ("htsim" | "laps") as peer, run, out, others, *payloads] if len(payloads) in (0, 2):
            write_flows(peer, in_packets(read_flows(run), *map(int, payloads or (1, 1))), out, int(others))
        case ["figures", ("conweave" | "hpcc" | "htsim" | "laps") as peer, *files] if files and len(files) % 2 == 0:
            figures(peer, zip(files[::2], files[1::2], strict=True))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
