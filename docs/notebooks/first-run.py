# %% [markdown]
# # First run and plots
#
# This notebook builds a scenario, checks it, runs it and draws the results. It needs `make python`, which installs the package
# with its plotting libraries.

# %%
import pathweave as pw
from pathweave import model

scenario = model.ScenarioFile(
    name="first-run",
    topology=model.LeafSpineTopology(leaves=4, spines=4, hosts_per_leaf=4),
    scheme="ecmp",
    workload=[model.AllToAllWorkload(size="64KB")],
    observe=model.Observe(interval="2us"),
)

# %% [markdown]
# `check` fills in every default without running the scenario. It reports the size of the network and the completion time that no
# transport can beat.

# %%
checked = scenario.checked()
network = checked.check()["network"]
print(network["hosts"], "hosts,", network["switches"], "switches")

# %% [markdown]
# The same scenario and seed give the same digest on every machine.

# %%
result = pw.run(checked, progress=False)
overall = result.summary["overall"]
print("digest:", result.digest)
print(f"P99 slowdown: {overall['slowdown']['p99']:.2f}")

# %% [markdown]
# The records are tables. Column names end in their unit. Here are the flows with the largest slowdown:

# %%
flows = result.flows.to_polars()
flows.sort("slowdown", descending=True).select("src_host", "dst_host", "size_bytes", "fct_ns", "slowdown").head(3)

# %% [markdown]
# The distribution of completion times, and the longest queues over time:

# %%
axes = result.plot.cdf("fct_ns")

# %%
axes = result.plot.series("queue_bytes", most=4)
