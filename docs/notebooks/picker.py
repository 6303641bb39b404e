# %% [markdown]
# # A path picker in Python
#
# A path picker chooses the path of each packet. To try an idea, write a class and pass it to `run`. It replaces the picker of the
# scheme. Congestion control, loss recovery and acknowledgements stay the same.

# %%
import pathweave as pw
from pathweave import model


class LeastMarked(pw.Picker):
    """Of two random paths, take the one with the lower share of ECN marks."""

    def __init__(self, queue_pair):
        super().__init__(queue_pair)
        self.marks = [0.0] * queue_pair.paths

    def pick(self, now_ps, paths, packet):
        one, other = (paths[int(self.random.random() * len(paths))] for _ in range(2))
        return min(one, other, key=self.marks.__getitem__)

    def on_feedback(self, now_ps, feedback):
        if feedback.kind == "ack":
            self.marks[feedback.path] += (feedback.marked - self.marks[feedback.path]) / 16


# %% [markdown]
# `check_picker` runs the same tests that the pickers of the engine have to pass: paths that fail, flap, mark or lose packets. It
# raises an error if the picker makes a mistake.

# %%
pw.check_picker(LeastMarked)
print("LeastMarked passes")

# %% [markdown]
# The fabric has one slow link. The picker should avoid it, because its packets are marked.

# %%
scenario = model.ScenarioFile(
    name="picker",
    topology=model.LeafSpineTopology(leaves=4, spines=4, hosts_per_leaf=4),
    scheme=model.Scheme(base="rps", paths=16),
    workload=[model.PermutationWorkload(size="2MB")],
    fault=[model.LinkRateFault(link="leaf0-spine0", at="0us", rate="25Gbps")],
)
random = pw.run(scenario, progress=False)
mine = pw.run(scenario, picker=LeastMarked, progress=False)
for name, result in (("random", random), ("LeastMarked", mine)):
    print(f"{name:12}", result.digest, f"last flow {result.flows.to_polars()['fct_ns'].max() / 1e3:.1f} us")

# %%
axes = random.plot.cdf("fct_ns")
axes = mine.plot.cdf("fct_ns", ax=axes)
axes.lines[-1].set_color("tab:orange")
legend = axes.legend(["random", "LeastMarked"])
