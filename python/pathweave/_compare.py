"""Several schemes over the same traffic."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import _pathweave
from ._pathweave import Cancel, RunResult
from ._plot import Plot
from ._run import ScenarioLike, as_scenario, run_shown


class Comparison:
    """Runs of one scenario, by scheme. The first is the one others are compared with; printing shows the table."""

    def __init__(self, schemes: Sequence[str], runs: Sequence[RunResult]) -> None:
        self._runs = dict(zip(schemes, runs, strict=True))

    @property
    def schemes(self) -> list[str]:
        """The schemes, in the order they were asked for."""
        return list(self._runs)

    def __getitem__(self, scheme: str) -> RunResult:
        return self._runs[scheme]

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

    def __str__(self) -> str:
        return _pathweave.comparison_table(list(self._runs.values()))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self._runs)}>"


def compare(
    scenario: ScenarioLike,
    schemes: Sequence[str],
    *,
    set: Sequence[str] = (),
    seed: int | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Runs a scenario under each scheme: the same traffic, the same seed.

    Args:
        scenario: A `Scenario`, a `model.ScenarioFile`, the path of a file, or a mapping laid out as the file is.
        schemes: Names of schemes; ratios are to the first.
        set: Changes, each `key=value` as for `pathweave compare --set`.
        seed: Instead of the scenario's.
        jobs: Runs at a time; as many as there are processors unless said. Results do not depend on it.
        threads: Threads of each run, as for `run`; unless said, of the processors that those beside it leave.
        progress: Whether to show a bar a run.

    Raises:
        ScenarioError: The scenario cannot run under one of the schemes; nothing has run then.
        ValueError: A scheme is named twice, or none is.
    """
    if not schemes:
        raise ValueError("compare needs at least one scheme")
    twice = [name for name in schemes if list(schemes).count(name) > 1]
    if twice:
        raise ValueError(f"schemes names {twice[0]!r} twice; name each once")
    base = as_scenario(scenario)
    # What tells the runs apart is the scheme.
    planned = [base.with_(set=[*set, f'name="{name}"'], seed=seed, scheme=name) for name in schemes]
    cancel = Cancel()

    processors = os.cpu_count() or 1
    at_a_time = min(jobs or processors, len(planned))
    cores = max(1, processors // at_a_time)
    with ThreadPoolExecutor(at_a_time) as pool:
        futures = [
            pool.submit(run_shown, one, scheme, progress, cancel, threads, cores)
            for one, scheme in zip(planned, schemes, strict=True)
        ]
        try:
            runs = [future.result() for future in futures]
        except BaseException:
            cancel.cancel()
            pool.shutdown(cancel_futures=True)
            raise
    return Comparison(schemes, runs)
