"""Sweeps: a scenario over values of its fields, on this machine or on many."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _pathweave
from ._pathweave import Cancel, Sweep, SweepRun
from ._progress import Bar
from ._run import check_jobs
from ._table import Root, plain

if TYPE_CHECKING:
    import polars

SweepLike = Sweep | str | os.PathLike[str] | Mapping[str, Any]
Files = dict[str, bytes]


class SweepResult:
    """What a sweep has left in its folder."""

    def __init__(self, path: Path, summary: dict[str, Any]) -> None:
        self.path = path
        self.summary = summary
        """The figures of `summary.json`: axes, cells with means and confidence intervals, who is best where."""

    @property
    def digest(self) -> str:
        """Digest of the dataset: the same for the same sweep, in any order and on any machine."""
        return str(self.summary["digest"])

    @property
    def partial(self) -> bool:
        """Runs are missing."""
        return bool(self.summary["partial"])

    @property
    def failed(self) -> dict[str, list[str]]:
        """Why cells failed, by their label."""
        return {cell["label"]: cell["failed"] for cell in self.summary["cells"] if cell["failed"]}

    def scan(self, table: str = "summary") -> polars.LazyFrame:
        """A table as a Polars LazyFrame.

        "summary" has a row a cell and figure: mean, half width of the 95 % confidence interval, least, largest.
        "runs" has a row a run: settings, seed, digest, figures. The others, such as "flows", have the rows of all runs
        with the settings of each.
        """
        import polars as pl

        if table in ("summary", "runs"):
            return pl.scan_parquet(self.path / f"{table}.parquet")
        settings = ["run", "cell", *(axis["key"] for axis in self.summary["axes"]), "seed"]
        runs = pl.scan_parquet(self.path / "runs.parquet").select(settings)
        # Runs of an earlier version of the sweep may lie there, too.
        rows = pl.scan_parquet(self.path / "runs" / "*" / f"{table}.parquet", hive_partitioning=True)
        return rows.join(runs, on="run", suffix="_of_sweep")

    def __repr__(self) -> str:
        of = self.summary
        return f"<SweepResult {of['name']!r}, {of['finished_runs']} of {of['runs']} runs, digest {self.digest}>"


def sweep(
    sweep: SweepLike,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: Any = None,
    progress: bool = True,
) -> SweepResult:
    """Runs a scenario with every combination of the values its fields are given; goes on where it was stopped.

    Args:
        sweep: The path of a sweep file, or a mapping laid out as the file is, whose `scenario` may be a
            `model.ScenarioFile`.
        out: Folder of the dataset; default: `results/NAME-sweep`. Runs finished there are not repeated.
        jobs: Runs at a time on this machine; default: the number of processors.
        scheduler: Makes the runs by Dask instead: the address of a scheduler ("tcp://host:8786"), or a
            `distributed.Client`. Needs the extra `pathweave[dask]`, here and on the workers.
        progress: Whether to show a bar.

    Raises:
        ScenarioError: The sweep file or its scenario is wrong; nothing has run then. A combination of values that do
            not go together is no error but a failed cell, see `SweepResult.failed`.
        ValueError: `jobs` is not 1 or more.
        OSError: The folder has other content, or another sweep writes there.
        KeyboardInterrupt: On Ctrl-C. What is finished is kept; the same call goes on.
    """
    check_jobs(jobs)
    if isinstance(sweep, Mapping):
        scenario = sweep.get("scenario")
        base_dir = scenario.base_dir if isinstance(scenario, Root) else ""
        sweep = Sweep.from_dict(plain(sweep), base_dir=base_dir)
    elif not isinstance(sweep, Sweep):
        sweep = Sweep.load(sweep)
    folder = sweep.open(out if out is not None else Path("results") / f"{sweep.name}-sweep")
    finished = set(folder.finished())
    todo = [run for run in sweep.runs if run.key not in finished]
    failed: dict[str, str] = {}
    made = _by_dask(todo, scheduler) if scheduler is not None else _by_threads(todo, jobs)
    try:
        with Bar(sweep.name) if progress else nullcontext() as bar, made as results:
            if bar and not todo:
                bar.show(1.0, "nothing left to run")
            for count, (run, future) in enumerate(results, 1):
                error = future.exception()
                if error is None:
                    files = future.result()
                    # Nothing is left of a run that was cancelled.
                    if files is not None:
                        folder.put(run.key, files)
                elif isinstance(error, Exception):
                    failed[run.key] = str(error)
                else:
                    raise error
                if bar:
                    bar.show(count / len(todo), f"{count} of {len(todo)} runs")
    finally:
        # Written in every case: the list of finished runs.
        summary = folder.write(failed)
    return SweepResult(Path(folder.path), summary)


@contextmanager
def _by_threads(todo: list[SweepRun], jobs: int | None) -> Iterator[Iterator[tuple[SweepRun, Future[Files | None]]]]:
    """Makes runs on this machine; yields each when it is done. The interpreter's lock is released meanwhile."""
    cancel = Cancel()
    pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1)

    def results() -> Iterator[tuple[SweepRun, Future[Files | None]]]:
        futures = {pool.submit(_pathweave.sweep_run, r.key, r.scenario, r.tables, cancel): r for r in todo}
        pending = set(futures)
        while pending:
            # A thread that waits without end cannot be interrupted everywhere.
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                yield futures.pop(future), future

    try:
        yield results()
    finally:
        cancel.cancel()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _by_dask(todo: list[SweepRun], scheduler: Any) -> Iterator[Iterator[tuple[SweepRun, Any]]]:
    """The same on the workers of a Dask cluster. Files come back over the network; workers need no disk of ours."""
    try:
        from distributed import Client, as_completed
    except ImportError as why:
        raise ImportError("sweeps by Dask need the extra pathweave[dask] (the package distributed)") from why
    ours = not isinstance(scheduler, Client)
    client = Client(scheduler) if ours else scheduler
    futures: dict[Any, SweepRun] = {}
    try:
        # A run is a pure function of its key: the runs of a worker that dies are repeated by others.
        for r in todo:
            task = client.submit(_pathweave.sweep_run, r.key, r.scenario, r.tables, key=f"pathweave-{r.key}")
            futures[task] = r

        def results() -> Iterator[tuple[SweepRun, Any]]:
            for future in as_completed(list(futures)):
                yield futures[future], future
                # The scheduler may forget the files.
                del futures[future]
                future.release()

        yield results()
    finally:
        client.cancel(list(futures))
        if ours:
            client.close()
