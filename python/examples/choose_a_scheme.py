"""Which scheme suits my cluster? Compares some under one's own traffic and shows tail slowdown by message size.

Run: python python/examples/choose_a_scheme.py [scenario.toml]
"""

import sys
from pathlib import Path

import polars as pl

import pathweave as pw

CANDIDATES = ["ecmp", "rps", "mprdma", "udmp"]
DEFAULT = Path(__file__).parents[2] / "scenarios" / "permutation.toml"


def main() -> None:
    scenario = pw.Scenario.load(sys.argv[1] if len(sys.argv) > 1 else DEFAULT)
    size = scenario.check()["network"]
    print(f"{scenario.name}: {size['hosts']} hosts, {size['switches']} switches")
    comparison = pw.compare(scenario, CANDIDATES, progress=sys.stderr.isatty())
    print(comparison)

    by_scheme = [
        comparison[scheme].flows.to_polars().with_columns(pl.lit(scheme).alias("candidate")) for scheme in CANDIDATES
    ]
    tails = (
        pl.concat(by_scheme, how="vertical_relaxed")
        .group_by("candidate", "size_bytes")
        .agg(pl.col("slowdown").quantile(0.99).alias("p99_slowdown"))
        .sort("size_bytes", "p99_slowdown")
    )
    best = tails.group_by("size_bytes", maintain_order=True).first()
    for size_bytes, scheme, p99 in best.select("size_bytes", "candidate", "p99_slowdown").iter_rows():
        print(f"{size_bytes:>12} B: {scheme} (99th percentile of slowdown {p99:.2f})")


if __name__ == "__main__":
    main()
