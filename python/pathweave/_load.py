"""Results read back from the folders that the program and this package write."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._sweep import SweepResult

if TYPE_CHECKING:
    import polars

TABLES = (
    "activities",
    "collectives",
    "critical",
    "events",
    "flows",
    "jobs",
    "layers",
    "links",
    "series",
    "waits",
)
SCHEMAS = {"pathweave.summary": "a run", "pathweave.comparison": "a comparison", "pathweave.sweep": "a sweep"}


class LoadedRun:
    """A run in a folder: figures, scenario and tables."""

    def __init__(self, path: Path, summary: dict[str, Any]) -> None:
        self.path = path
        self.summary = summary
        """The figures of `summary.json`."""

    @property
    def name(self) -> str:
        """Name of the run; in a comparison the scheme."""
        return str(self.summary["run"]["name"])

    @property
    def digest(self) -> str:
        """Digest of the event trace: equal for equal scenario and seed."""
        return str(self.summary["run"]["digest"])

    @property
    def version(self) -> str:
        """Version of the program that made the run."""
        return str(self.summary["run"]["version"])

    @property
    def scenario(self) -> str:
        """The scenario with every default filled in, as TOML."""
        return (self.path / "scenario.toml").read_text()

    def scan(self, table: str = "flows") -> polars.LazyFrame:
        """A table as a Polars LazyFrame: "flows", "jobs", "links", "series", "events" and others of a run's folder."""
        import polars as pl

        if table not in TABLES:
            raise ValueError(f"table is {table!r}; expected one of {', '.join(TABLES)}")
        return pl.scan_parquet(self.path / f"{table}.parquet")

    def __repr__(self) -> str:
        return f"<LoadedRun {self.name!r}, version {self.version}, digest {self.digest}>"


class LoadedComparison:
    """The runs of a comparison in a folder, by name and in its order."""

    def __init__(self, path: Path, summary: dict[str, Any], runs: list[LoadedRun]) -> None:
        self.path = path
        self.summary = summary
        """The figures of `summary.json`: the verdict, and the figures of each run."""
        self._runs = {run.name: run for run in runs}

    @property
    def schemes(self) -> list[str]:
        """The names of the runs."""
        return list(self._runs)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence; empty in folders of versions without one."""
        return str(self.summary.get("verdict", {}).get("sentence", ""))

    def __getitem__(self, name: str) -> LoadedRun:
        if name not in self._runs:
            raise KeyError(f"{name!r}; the comparison has {', '.join(self._runs)}")
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return f"<LoadedComparison of {', '.join(self._runs)}>"


def load(folder: str | os.PathLike[str]) -> LoadedRun | LoadedComparison | SweepResult:
    """Reads a result folder that `run`, `compare` or `sweep` wrote, here or by the program; older versions too.

    Raises:
        ValueError: The folder has no results, or its `summary.json` is not that of a run, a comparison or a sweep.
    """
    path = Path(folder)
    file = path / "summary.json"
    if not path.is_dir():
        raise ValueError(f"{path}: it is {'a file' if path.exists() else 'not there'}; expected a result folder")
    if not file.is_file():
        inside = sorted(str(inner.parent) for inner in path.glob("*/summary.json"))
        hint = f"; here: {', '.join(inside[:6])}" if inside else ""
        raise ValueError(f"{path}: it has no results, because it has no summary.json{hint}")
    summary = _summary(file)
    kind = SCHEMAS[summary["schema"]]
    if kind == "a run":
        return LoadedRun(path, summary)
    if kind == "a sweep":
        return SweepResult(path, summary)
    found = [LoadedRun(inner.parent, _summary(inner)) for inner in sorted(path.glob("*/summary.json"))]
    order = [run["run"]["name"] for run in summary["runs"]]
    found.sort(key=lambda run: order.index(run.name) if run.name in order else len(order))
    return LoadedComparison(path, summary, found)


def _summary(file: Path) -> dict[str, Any]:
    try:
        summary = json.loads(file.read_text())
    except ValueError as why:
        raise ValueError(f"{file}: the summary is not JSON: {why}") from why
    schema = summary.get("schema") if isinstance(summary, dict) else None
    if schema not in SCHEMAS:
        expected = ", ".join(SCHEMAS)
        raise ValueError(f"{file}: schema is {schema!r}; expected one of {expected}")
    return dict(summary)
