# %% [markdown]
# # A sweep with confidence intervals
#
# How many spines does a permutation need, and is the difference between two schemes real? A sweep runs a scenario with several
# values of its fields and several seeds. It resumes where it was interrupted.

# %%
import matplotlib.pyplot as plt
import polars as pl

import pathweave as pw
from pathweave import model

sweep = pw.sweep(
    {
        "name": "spines",
        "seeds": 5,
        "scenario": model.ScenarioFile(
            topology=model.LeafSpineTopology(leaves=4, spines=1, hosts_per_leaf=4),
            workload=[model.PermutationWorkload(size="64KB")],
        ),
        "grid": [
            {"key": "scheme", "values": ["ecmp", "rps", "weave"]},
            {"key": "topology.spines", "values": [1, 2, 4]},
        ],
    },
    out="results/spines-sweep",
    progress=False,
)
print("digest:", sweep.digest)

# %% [markdown]
# The summary has one row per cell and figure, with the mean over seeds and the half width of the 95 % confidence interval.

# %%
figures = (
    sweep.scan()
    .filter(pl.col("metric") == "fct_max_ns")
    .select(
        "scheme",
        pl.col("topology.spines").cast(pl.Int64).alias("spines"),
        (pl.col("mean") / 1e3).round(1).alias("mean_us"),
        (pl.col("ci95") / 1e3).round(1).alias("ci95_us"),
    )
    .sort("spines", "scheme")
    .collect()
)
figures

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for number, (scheme, of) in enumerate(figures.group_by("scheme", maintain_order=True)):
    # Side by side, since some lie on each other.
    axes.errorbar(
        of["spines"] + 0.05 * number, of["mean_us"], yerr=of["ci95_us"], marker="o", capsize=3, label=scheme[0]
    )
axes.set(xlabel="Spines", ylabel="Last flow done (us)", xticks=[1, 2, 4], ylim=(0, None))
axes.grid(alpha=0.3)
legend = axes.legend()

# %% [markdown]
# With one spine all schemes have the same single path between two leaves. With four spines the interval of ECMP does not overlap
# with the others, so this difference is real. Random spraying and weave are level.
