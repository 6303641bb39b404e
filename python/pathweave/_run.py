"""One run, with a progress bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _pathweave
from ._control import ControlLike
from ._pathweave import Cancel, Progress, RunResult, Scenario
from ._picker import PickerLike
from ._progress import Bar
from ._table import Root, plain
from .model import Fidelity

ScenarioLike = Scenario | Root | str | os.PathLike[str] | Mapping[str, Any]
SettingsLike = Sequence[str] | Mapping[str, Any]
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


def as_settings(set: SettingsLike) -> list[str]:
    """Changes of a scenario as `key=value`."""
    return _pathweave.settings(plain(set) if isinstance(set, Mapping) else set)


def check_jobs(jobs: int | None) -> None:
    """Raises `ValueError` unless `jobs`, the number of runs at a time, is 1 or more."""
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs is {jobs}; expected 1 or more")


def run_shown(
    scenario: Scenario,
    label: str,
    progress: ProgressLike,
    cancel: Cancel | None,
    threads: int | None,
    cores: int | None = None,
    picker: PickerLike | None = None,
    control: ControlLike | None = None,
) -> RunResult:
    """Runs a checked scenario and shows its progress; `label` is the name of the bar."""
    if callable(progress):
        return _pathweave.run(scenario, progress, cancel, threads, cores, picker, control)
    if not progress:
        return _pathweave.run(scenario, None, cancel, threads, cores, picker, control)
    with Bar(label) as bar:
        result = _pathweave.run(scenario, bar.update, cancel, threads, cores, picker, control)
        # A run that was cancelled stays where it is.
        if result.ended != "interrupted":
            bar.show(1.0, result.ended.replace("_", " "))
        return result


def run(
    scenario: ScenarioLike,
    *,
    set: SettingsLike = (),
    seed: int | None = None,
    scheme: str | None = None,
    fidelity: Fidelity | None = None,
    picker: PickerLike | None = None,
    control: ControlLike | None = None,
    threads: int | None = None,
    progress: ProgressLike = True,
    cancel: Cancel | None = None,
) -> RunResult:
    """Runs a scenario to its end.

    Args:
        scenario: A `Scenario`, a `model.ScenarioFile`, the path of a file, or a mapping laid out as the file is.
        set: Changes, each `key=value` as for `pathweave run --set`: `["topology.pods=4", "workload[0].size=8MB"]`. Or a
            mapping: `{"topology.pods": 4, "workload[0].size": "8MB"}`.
        seed: Instead of the scenario's.
        scheme: The scheme of all workloads that name none.
        fidelity: "packet", or "flow" for messages as fluids that share links; default: `run.fidelity` of the scenario.
        picker: A subclass of `Picker` that chooses the path of each packet, in place of the pickers that the scenario's
            schemes have; or another callable that takes a `QueuePair` and returns a `Picker`.
        control: A subclass of `CongestionControl` that limits the window or rate of each queue pair, in place of the
            congestion controls that the scenario's schemes have; or another callable that returns one.
        threads: Number of threads. Results do not depend on it. Default: `run.threads` of the scenario, otherwise the
            number of processors, at most one for 64 hosts. With `picker` or `control`: one.
        progress: A bar (True), none (False), or a function called with a `Progress` ten times a second.
        cancel: Ends the run from another thread; the result is then marked interrupted.

    Raises:
        ScenarioError: The scenario cannot run; its text shows every mistake with its line.
        ValueError: A scheme decides rate and path together, so `picker` or `control` has no place in it; or `pick`
            returned a path that cannot be used, or a control set a limit that is none; or `seed` or `threads` is not
            in its range.
        TypeError: `set` is a text, or `picker` or `control` has the wrong type.
        Exception: What the picker, the control or the progress function raises ends the run and comes out as it is.
        KeyboardInterrupt: On Ctrl-C. The simulation stops within a tenth of a second.

    The interpreter's lock is released while the simulation runs, so several runs may go on in threads.
    """
    scenario = as_scenario(scenario)
    changes = [*as_settings(set), *([] if fidelity is None else [f'run.fidelity="{fidelity}"'])]
    if changes or seed is not None or scheme is not None:
        scenario = scenario.with_(set=changes, seed=seed, scheme=scheme)
    return run_shown(scenario, scheme or scenario.name, progress, cancel, threads, picker=picker, control=control)
