"""Several schemes over the same traffic, with packets, without, or both."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import _pathweave
from ._control import ControlLike
from ._pathweave import Cancel, RunResult, Scenario
from ._picker import PickerLike
from ._plot import Plot
from ._run import ScenarioLike, SettingsLike, as_scenario, as_settings, check_jobs, run_shown
from .model import Fidelity


class Comparison:
    """Runs of one scenario by name: the scheme, the fidelity, or both where there are several, as in "rps flow".

    Printing shows the verdict and a table, best first, as `pathweave compare` does.
    """

    def __init__(self, names: Sequence[str], runs: Sequence[RunResult]) -> None:
        self._runs = dict(zip(names, runs, strict=True))

    @property
    def schemes(self) -> list[str]:
        """The names of the runs, in the requested order."""
        return list(self._runs)

    def __getitem__(self, name: str) -> RunResult:
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def plot(self) -> Plot:
        """Pictures of the runs beside each other; needs the extra `pathweave[plots]`."""
        return Plot(self._runs)

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the folder that `pathweave compare` writes: a folder a run, and a report of all."""
        return _pathweave.write_comparison(list(self._runs.values()), folder)

    def table(self) -> str:
        """Every figure of the summaries beside each other, with ratios to the first run, as of `compare --all`."""
        return _pathweave.comparison_table(list(self._runs.values()))

    def __str__(self) -> str:
        return _pathweave.comparison_brief(list(self._runs.values()))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self._runs)}>"


def compare(
    scenario: ScenarioLike,
    schemes: Sequence[str] = (),
    *,
    fidelity: Sequence[Fidelity] = (),
    pickers: Mapping[str, PickerLike] | None = None,
    controls: Mapping[str, ControlLike] | None = None,
    base: str | None = None,
    set: SettingsLike = (),
    seed: int | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Runs a scenario under each scheme, with each fidelity, and with own pickers and congestion controls beside them.

    All runs have the same traffic and the same seed.

    >>> pw.compare("scenarios/permutation.toml", ["ecmp", "weave"], pickers={"mine": RoundRobin}, base="rps")

    Args:
        scenario: A `Scenario`, a `model.ScenarioFile`, the path of a file, or a mapping laid out as the file is.
        schemes: Names of schemes; ratios are to the first. None: those of the scenario.
        fidelity: "packet", "flow" or both, as for `pathweave compare --fidelity`; none: the scenario's `run.fidelity`.
        pickers: Path pickers by name, as `run` takes them. Each is one more run, with packets, under the scheme `base`.
        controls: Congestion controls by name, likewise. A name in both has a picker and a control.
        base: The scheme of the runs with an own picker or control; default: the scenario's.
        set: Changes, as for `run`.
        seed: Instead of the scenario's.
        jobs: Runs at a time; default: the number of processors. Results do not depend on it.
        threads: Threads of each run, as for `run`; default: the processors that other runs leave.
        progress: Whether to show a bar a run.

    Raises:
        ScenarioError: The scenario cannot run under one of the schemes; nothing has run then.
        ValueError: A scheme or fidelity is named twice, or there is nothing to compare; a picker or control has the
            name of a scheme; or `base` decides rate and path together; or `seed`, `jobs` or `threads` is
            not in its range.
        TypeError: `schemes` or `set` is a text.
    """
    check_jobs(jobs)
    settings = as_settings(set)
    own = {**(pickers or {}), **(controls or {})}
    if not schemes and not fidelity and not own:
        raise ValueError('compare needs at least one scheme, picker or control, or fidelity=["packet", "flow"]')
    if isinstance(schemes, str):
        raise TypeError(f"schemes is the text {schemes!r}; expected a list of names, such as [{schemes!r}]")
    for argument, given in (("schemes", schemes), ("fidelity", fidelity)):
        twice = [name for name in given if list(given).count(name) > 1]
        if twice:
            raise ValueError(f"{argument} names {twice[0]!r} twice; name each once")
    taken = [name for name in own if name in schemes]
    if taken:
        raise ValueError(f"a picker or control has the name of the scheme {taken[0]!r}; name it otherwise")
    scenario = as_scenario(scenario)
    names: list[str] = []
    planned: list[tuple[Scenario, PickerLike | None, ControlLike | None]] = []
    nothing: list[None] = [None]
    for scheme in schemes or (nothing if fidelity or not own else []):
        for moved in fidelity or nothing:
            # What there is one of at most is not in the names.
            name = f"{scheme} {moved}" if scheme and len(fidelity) > 1 else scheme or str(moved)
            changes = [*settings, f'name="{name}"', *([f'run.fidelity="{moved}"'] if moved else [])]
            names.append(name)
            planned.append((scenario.with_(set=changes, seed=seed, scheme=scheme), None, None))
    for name in own:
        changes = [*settings, f"name={json.dumps(name)}", *(['run.fidelity="packet"'] if fidelity else [])]
        names.append(name)
        changed = scenario.with_(set=changes, seed=seed, scheme=base)
        planned.append((changed, (pickers or {}).get(name), (controls or {}).get(name)))
    cancel = Cancel()

    processors = os.cpu_count() or 1
    at_a_time = min(jobs or processors, len(planned))
    cores = max(1, processors // at_a_time)
    with ThreadPoolExecutor(at_a_time) as pool:
        futures = [
            pool.submit(run_shown, one, name, progress, cancel, threads, cores, picker, control)
            for (one, picker, control), name in zip(planned, names, strict=True)
        ]
        try:
            runs = [future.result() for future in futures]
        except BaseException:
            cancel.cancel()
            pool.shutdown(cancel_futures=True)
            raise
    return Comparison(names, runs)
