"""A trace as a workload: an all-reduce of 1 MiB around a ring of eight GPUs, as recorded (Chakra), on one's own fabric.

Compares the iteration on an idle star with arithmetic, then puts the ranks behind a congested fabric.

Run: python python/examples/read_a_trace.py [trace] [--picture trace.png]
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import pathweave as pw
from pathweave import model

TRACE = Path(__file__).parents[2] / "scenarios" / "chakra-ring"
RANKS = 8


def star(trace: Path) -> model.ScenarioFile:
    """The ranks at one switch, alone."""
    return model.ScenarioFile(
        name="star",
        topology=model.StarTopology(hosts=RANKS),
        workload=[model.ChakraWorkload(trace=str(trace))],
    )


def congested(trace: Path) -> model.ScenarioFile:
    """The ranks in two racks that share one uplink each with strangers."""
    return model.ScenarioFile(
        name="congested",
        topology=model.LeafSpineTopology(leaves=2, spines=1, hosts_per_leaf=RANKS),
        workload=[
            model.ChakraWorkload(trace=str(trace), hosts=[*range(RANKS // 2), *range(RANKS, RANKS + RANKS // 2)]),
            model.PermutationWorkload(group="strangers", size="4GiB", role="background"),
        ],
    )


def main() -> None:
    """Runs both, and shows when each message was under way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", nargs="?", type=Path, default=TRACE, help="folder of PREFIX.0.et, PREFIX.1.et, ...")
    parser.add_argument("--picture", type=Path, default=Path("trace.png"))
    given = parser.parse_args()

    plt.style.use("tableau-colorblind10")
    figure, rows = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
    for axes, scenario in zip(rows, [star(given.trace), congested(given.trace)], strict=True):
        result = pw.run(scenario, progress=False)
        job = result.jobs.to_polars().filter(pl.col("group") == "chakra").sort("finish_ns").row(-1, named=True)
        took_us = (job["finish_ns"] - job["start_ns"]) / 1e3
        print(
            f"{result.name}: iteration {took_us:.1f} us, of which nobody computed for {job['exposed_ns'] / 1e3:.1f} us"
        )

        flows = result.flows.to_polars().filter(pl.col("group") == "chakra").sort("start_ns")
        axes.barh(flows["src_host"], flows["fct_ns"] / 1e3, left=flows["start_ns"] / 1e3, height=0.7, edgecolor="white")
        axes.set(ylabel="Sender", xlabel="Time (us)", title=f"{result.name}: {took_us:.1f} us")
        axes.invert_yaxis()
    figure.savefig(given.picture, dpi=150)
    print(f"picture: {given.picture}")


if __name__ == "__main__":
    main()
