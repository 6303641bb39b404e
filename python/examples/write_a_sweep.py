"""A sweep: how many spines does a permutation need, under three schemes? With confidence intervals over seeds.

Stop it and start it again: what is finished is not run again.

Run: python python/examples/write_a_sweep.py [--out results/spines-sweep] [--picture spines.png]
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl

import pathweave as pw
from pathweave import model

SCHEMES = ["ecmp", "rps", "udmp"]
SPINES = [1, 2, 4, 8]


def main() -> None:
    """Runs what is missing, and shows all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/spines-sweep"))
    parser.add_argument("--picture", type=Path, default=Path("spines.png"))
    given = parser.parse_args()

    sweep = pw.sweep(
        {
            "name": "spines",
            "seeds": 5,
            "scenario": model.ScenarioFile(
                topology=model.LeafSpineTopology(leaves=4, spines=SPINES[0], hosts_per_leaf=4),
                workload=[model.PermutationWorkload(size="256KB")],
            ),
            "grid": [
                {"key": "scheme", "values": SCHEMES},
                {"key": "topology.spines", "values": SPINES},
            ],
            "report": {"metric": "fct_max_ns"},
        },
        out=given.out,
        progress=sys.stderr.isatty(),
    )
    print(f"dataset digest: {sweep.digest}\nreport: {sweep.path / 'report.html'}")

    # A row a cell and figure.
    figures = (
        sweep.scan()
        .filter(pl.col("metric") == "fct_max_ns")
        .select(
            "scheme",
            # Settings are texts.
            pl.col("topology.spines").cast(pl.Int64).alias("spines"),
            (pl.col("mean") / 1e3).alias("mean_us"),
            (pl.col("ci95") / 1e3).alias("ci95_us"),
        )
        .sort("scheme", "spines")
        .collect()
    )
    with pl.Config(tbl_rows=-1):
        print(figures)

    plt.style.use("tableau-colorblind10")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for scheme in SCHEMES:
        of = figures.filter(pl.col("scheme") == scheme)
        axes.errorbar(of["spines"], of["mean_us"], yerr=of["ci95_us"], marker="o", capsize=3, label=scheme)
    axes.set(xlabel="Spines", ylabel="Last flow done (us)", xticks=SPINES, ylim=(0, None))
    axes.set_title("Permutation of 256 KB over 16 hosts, 95 % confidence over 5 seeds")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(given.picture, dpi=150)
    print(f"picture: {given.picture}")


if __name__ == "__main__":
    main()
