"""Transport for AI-cluster fabrics: build a scenario, run it, read its records as frames.

>>> import pathweave as pw
>>> scenario = pw.Scenario.load("scenarios/quickstart.toml")
>>> result = pw.run(scenario, progress=False)
>>> result.flows.to_polars()  # a row a flow: fct_ns, slowdown, goodput_bps, ...

Scenarios are files, dicts laid out as files are, or the typed objects of `pathweave.model`. The defaults and the errors
are those of the program `pathweave`; the same scenario and seed give the same digest.
"""

from . import model
from ._compare import Comparison, compare
from ._control import CongestionControl
from ._diff import Difference, diff
from ._load import LoadedComparison, LoadedRun, load
from ._pathweave import (
    Cancel,
    Feedback,
    Packet,
    Path,
    Progress,
    QueuePair,
    RunResult,
    Scenario,
    ScenarioError,
    Sweep,
    Table,
    __version__,
    check_control,
    check_picker,
    presets,
    schema,
    schemes,
    topologies,
    workloads,
)
from ._picker import Picker
from ._run import run
from ._sweep import SweepResult, sweep

__all__ = [
    "Cancel",
    "Comparison",
    "CongestionControl",
    "Difference",
    "Feedback",
    "LoadedComparison",
    "LoadedRun",
    "Packet",
    "Path",
    "Picker",
    "Progress",
    "QueuePair",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepResult",
    "Table",
    "__version__",
    "check_control",
    "check_picker",
    "compare",
    "diff",
    "load",
    "model",
    "presets",
    "run",
    "schema",
    "schemes",
    "sweep",
    "topologies",
    "workloads",
]
