"""One run, with a progress bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _pathweave
from ._pathweave import Cancel, Progress, RunResult, Scenario
from ._progress import Bar
from ._table import Root, plain

ScenarioLike = Scenario | Root | str | os.PathLike[str] | Mapping[str, Any]
ProgressLike = bool | Callable[[Progress], object]


def as_scenario(scenario: ScenarioLike) -> Scenario:
    """A scenario from itself, typed objects, the path of its file, or a mapping laid out as the file is."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, Root):
        return scenario.checked()
    if isinstance(scenario, Mapping):
        return Scenario.from_dict(plain(scenario))
    return Scenario.load(scenario)


def run_shown(
    scenario: Scenario,
    label: str,
    progress: ProgressLike,
    cancel: Cancel | None,
    threads: int | None,
    cores: int | None = None,
) -> RunResult:
    """Runs a scenario that is ready, and shows its progress as asked for; `label` is what a bar is called."""
    if callable(progress):
        return _pathweave.run(scenario, progress, cancel, threads, cores)
    if not progress:
        return _pathweave.run(scenario, None, cancel, threads, cores)
    with Bar(label) as bar:
        result = _pathweave.run(scenario, bar.update, cancel, threads, cores)
        # A run that was cancelled stays where it is.
        if result.ended != "interrupted":
            bar.show(1.0, result.ended.replace("_", " "))
        return result


def run(
    scenario: ScenarioLike,
    *,
    set: Sequence[str] = (),
    seed: int | None = None,
    scheme: str | None = None,
    threads: int | None = None,
    progress: ProgressLike = True,
    cancel: Cancel | None = None,
) -> RunResult:
    """Runs a scenario to its end.

    Args:
        scenario: A `Scenario`, a `model.ScenarioFile`, the path of a file, or a mapping laid out as the file is.
        set: Changes, each `key=value` as for `pathweave run --set`: `["topology.pods=4", "workload[0].size=8MB"]`.
        seed: Instead of the scenario's.
        scheme: The scheme of all workloads that name none.
        threads: Threads that run it side by side. Results do not depend on it. Unless said here or by `run.threads` of
            the scenario: as many as there are processors, but no more than one for 64 hosts.
        progress: A bar (True), nothing (False), or a function called with a `Progress` ten times a second.
        cancel: Ends the run from another thread; the result is then marked interrupted.

    Raises:
        ScenarioError: The scenario cannot run; its text shows every mistake with its line.
        KeyboardInterrupt: On Ctrl-C. The simulation stops within a tenth of a second.

    The interpreter's lock is released while the simulation runs, so several runs may go on in threads.
    """
    scenario = as_scenario(scenario)
    if set or seed is not None or scheme is not None:
        scenario = scenario.with_(set=list(set), seed=seed, scheme=scheme)
    return run_shown(scenario, scheme or scenario.name, progress, cancel, threads)
