"""A figure of a paper, run again: throughput of every flow of a permutation over 320 hosts (UDMP, figure 6a).

`pathweave paper udmp` repeats all figures and judges every claim; this is one of them by hand, to change and to learn
from. The paper does not say how large its messages are: 8 MB here, as `pathweave paper udmp --quick` has it.

Run: python python/examples/reproduce_a_figure.py [--size 8MB] [--picture udmp-6a.png]
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import pathweave as pw
from pathweave import model

# What the paper plots, and what ours are called.
CURVES = {"UDMP": "udmp", "MPRDMA": "mprdma", "QP-Scaling-16": "qp16", "QP-Scaling-32": "qp32"}
# Section V-B, text on figure 6a: the throughput that 99 % of flows reach, UDMP's over that of others.
PUBLISHED = {"MPRDMA": 2.0, "QP-Scaling-16": 1.7, "QP-Scaling-32": 1.3}
# 1,400 of 1,448 bytes are payload, and each packet is answered by an acknowledgement of 60 bytes.
CEILING_GBPS = 92.8


def fabric(size: str) -> model.ScenarioFile:
    """Section V-B: 320 hosts, marks from 36 packets on, a bandwidth-delay product of 108 packets."""
    return model.ScenarioFile(
        topology=model.PresetTopology(preset="udmp-320"),
        network=model.Network(framing="ns3", mtu="1400B"),
        switch=model.Switch(buffer="32MB", ecn=model.Ecn(kmin="52128B", kmax="52128B", pmax=1.0, thresholds="fixed")),
        workload=[model.PermutationWorkload(size=size)],
        observe=model.Observe(interval="0s"),
    )


def main() -> None:
    """Runs the four curves, and shows the published ratios beside ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="8MB", help="of each message [default: 8MB]")
    parser.add_argument("--picture", type=Path, default=Path("udmp-6a.png"))
    given = parser.parse_args()

    comparison = pw.compare(fabric(given.size), list(CURVES.values()), progress=sys.stderr.isatty())
    # Bits of payload a nanosecond are Gb/s.
    gbps = {
        curve: flows["size_bytes"] * 8 / flows["fct_ns"]
        for curve, flows in ((c, comparison[s].flows.to_polars()) for c, s in CURVES.items())
    }
    tail = {curve: values.quantile(0.01, "lower") or 0.0 for curve, values in gbps.items()}
    mean = {curve: sum(values) / len(values) for curve, values in gbps.items()}
    print(f"{'':>14}  mean Gb/s  P99-tail Gb/s  UDMP over it  published")
    for curve in gbps:
        told = f"{PUBLISHED[curve]:.1f}" if curve in PUBLISHED else "-"
        print(f"{curve:>14}  {mean[curve]:9.1f}  {tail[curve]:13.1f}  {tail['UDMP'] / tail[curve]:12.2f}  {told:>9}")

    plt.style.use("tableau-colorblind10")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for curve, values in gbps.items():
        axes.ecdf(values.to_numpy(), label=curve)
    axes.axvline(CEILING_GBPS, color="grey", linestyle=":", label="ceiling")
    axes.set(xlabel="Throughput of a flow (Gb/s)", ylabel="CDF", xlim=(0, 100))
    axes.set_title(f"Permutation of {given.size} over 320 hosts (UDMP, figure 6a)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(given.picture, dpi=150)
    print(f"picture: {given.picture}")


if __name__ == "__main__":
    main()
