"""Which scheme suits my cluster? Compares some under one's own traffic, by size of message and by the tail.

Run: python python/examples/choose_a_scheme.py [scenario.toml] [--picture choose.png]
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import pathweave as pw
from pathweave import model

CANDIDATES = ["ecmp", "rps", "mprdma", "udmp"]


def my_cluster() -> model.ScenarioFile:
    """Four racks under four spines, with short messages among a collective's long ones."""
    return model.ScenarioFile(
        name="my-cluster",
        topology=model.LeafSpineTopology(leaves=4, spines=4, hosts_per_leaf=8, spine_rate="200Gbps"),
        workload=[
            model.PermutationWorkload(group="long", size="2MB"),
            model.PoissonWorkload(group="short", sizes="hadoop", load=0.2, duration="100us"),
        ],
    )


def main() -> None:
    """Compares, and tells who is best for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="?", help="scenario file instead of the one in this script")
    parser.add_argument("--picture", type=Path, default=Path("choose.png"))
    given = parser.parse_args()

    scenario = pw.Scenario.load(given.scenario) if given.scenario else my_cluster().checked()
    size = scenario.check()["network"]
    print(f"{scenario.name}: {size['hosts']} hosts, {size['switches']} switches")
    comparison = pw.compare(scenario, CANDIDATES, progress=sys.stderr.isatty())
    print(comparison)

    flows = pl.concat(
        comparison[scheme]
        .flows.to_polars()
        .select(
            pl.lit(scheme).alias("candidate"),
            pl.col("size_bytes").log10().floor().cast(pl.Int32).alias("decade"),
            "slowdown",
        )
        for scheme in CANDIDATES
    )
    tails = (
        flows.group_by("candidate", "decade")
        .agg(pl.col("slowdown").quantile(0.99).alias("p99_slowdown"), pl.len().alias("flows"))
        .sort("decade", "p99_slowdown")
    )
    best = tails.group_by("decade", maintain_order=True).first()
    for decade, scheme, p99, count in best.select("decade", "candidate", "p99_slowdown", "flows").iter_rows():
        print(f"from {10**decade} B: {scheme} (99th percentile of slowdown {p99:.2f}, {count} flows)")

    plt.style.use("tableau-colorblind10")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for scheme in CANDIDATES:
        axes.ecdf(flows.filter(pl.col("candidate") == scheme)["slowdown"].drop_nulls().to_numpy(), label=scheme)
    axes.set(xlabel="Slowdown (completion time over that on an idle network)", ylabel="Fraction of flows")
    axes.set_title(scenario.name)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(given.picture, dpi=150)
    print(f"picture: {given.picture}")


if __name__ == "__main__":
    main()
