"""Differences between two result folders."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _pathweave
from ._load import LoadedComparison, LoadedRun
from ._sweep import SweepResult

if TYPE_CHECKING:
    import polars

Results = str | os.PathLike[str] | LoadedRun | LoadedComparison | SweepResult


class Difference:
    """Differences between results A and B; printing shows those that `pathweave diff` prints."""

    def __init__(self, found: dict[str, Any], table: str) -> None:
        self._found = found
        self._table = table

    @property
    def sentence(self) -> str:
        """The differences in a few sentences: who is better by how much, and how many settings differ."""
        return str(self._found["sentence"])

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Scenario fields that differ: `field`, its values `a` and `b`, and `runs`, empty where it is in each run."""
        return list(self._found["settings"])

    @property
    def results(self) -> list[dict[str, Any]]:
        """Figures of the runs of both, equal ones too: `run`, `workload`, `figure` with unit, `a`, `b`, `change_ratio`.

        The ratio is 0.1 if B is 10 % above A, and None from zero or without two values.
        """
        return list(self._found["results"])

    @property
    def only_in_a(self) -> list[str]:
        """Runs that B lacks."""
        return list(self._found["only_in_a"])

    @property
    def only_in_b(self) -> list[str]:
        """Runs that A lacks."""
        return list(self._found["only_in_b"])

    @property
    def versions(self) -> tuple[list[str], list[str]]:
        """Versions of the program that made A, and B."""
        return list(self._found["a"]["versions"]), list(self._found["b"]["versions"])

    def to_polars(self) -> polars.DataFrame:
        """The results as a Polars frame, a row a figure."""
        import polars as pl

        text, number = (
            dict.fromkeys(("run", "workload", "figure"), pl.String),
            dict.fromkeys(("a", "b", "change_ratio"), pl.Float64),
        )
        schema = {**text, **number}
        return pl.DataFrame([[row[key] for key in schema] for row in self.results], schema=schema, orient="row")

    def __str__(self) -> str:
        return f"{self.sentence}\n{self._table}"

    def __repr__(self) -> str:
        return f"<Difference: {self.sentence}>"


def diff(a: Results, b: Results) -> Difference:
    """Compares two results in settings and figures: folders of runs, comparisons or sweeps, of any version.

    Runs are paired by name; a single run pairs with a single run of any name.

    >>> pw.diff("results/before", "results/after").sentence

    Args:
        a: A result folder, or what `load` returned.
        b: Another one. Changes are from A to B.

    Raises:
        ValueError: A folder has no results, a file of it is not as the program writes it, or no run is in both.
    """
    return Difference(*_pathweave.diff(_folder(a), _folder(b)))


def _folder(results: Results) -> str | os.PathLike[str]:
    return results.path if isinstance(results, LoadedRun | LoadedComparison | SweepResult) else results
