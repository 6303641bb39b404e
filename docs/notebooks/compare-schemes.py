# %% [markdown]
# # Compare schemes on an unequal fabric
#
# Real fabrics are rarely symmetric: a cable is faulty, or a link runs at a lower rate. Here one leaf has a link to one spine that
# runs at a quarter of its rate. Four schemes carry the same traffic with the same seed.

# %%
import matplotlib.pyplot as plt
import polars as pl

import pathweave as pw
from pathweave import model

scenario = model.ScenarioFile(
    name="unequal",
    topology=model.LeafSpineTopology(leaves=4, spines=4, hosts_per_leaf=4),
    workload=[model.PermutationWorkload(size="1MB")],
    fault=[model.LinkRateFault(link="leaf0-spine0", at="0us", rate="25Gbps")],
)
schemes = ["ecmp", "rps", "udmp", "weave"]
comparison = pw.compare(scenario, schemes, progress=False)

# %% [markdown]
# The last flow decides when a collective is done:

# %%
rows = []
for scheme in schemes:
    flows = comparison[scheme].flows.to_polars()
    rows.append({"scheme": scheme, "mean us": flows["fct_ns"].mean() / 1e3, "last us": flows["fct_ns"].max() / 1e3})
table = pl.DataFrame(rows).with_columns(pl.col("mean us", "last us").round(1))
table

# %% [markdown]
# ECMP suffers from flows that share a path. Random spraying sends a quarter of the packets of the affected leaf over the slow link.
# UDMP and weave use feedback from the paths and send less over the slow link.

# %%
axes = comparison.plot.cdf("fct_ns")

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.barh(table["scheme"], table["last us"])
axes.invert_yaxis()
axes.set(xlabel="Last flow done (us)")
axes.bar_label(axes.containers[0], padding=3)
axes.set_xmargin(0.12)
