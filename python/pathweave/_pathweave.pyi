"""The compiled engine. Use it through the package `pathweave`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, final

import pandas
import polars
import pyarrow

__all__ = [
    "Cancel",
    "Progress",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepFolder",
    "SweepRun",
    "Table",
    "__version__",
    "comparison_table",
    "presets",
    "run",
    "schema",
    "schemes",
    "sweep_run",
    "topologies",
    "workloads",
    "write_comparison",
]

__version__: str

class ScenarioError(ValueError):
    """A scenario that cannot run. The text shows each finding with the line it is about."""

    findings: list[dict[str, Any]]
    """Each with `message`, `field`, `line` (None where it was not written), `allowed` and `help`."""

@final
class Scenario:
    """A scenario: network, traffic, schemes and what goes wrong, complete and checked. It does not change."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file. Raises `ScenarioError` with every mistake found."""
    @staticmethod
    def from_toml(text: str, name: str = "scenario.toml", base_dir: str | os.PathLike[str] = ...) -> Scenario:
        """Reads a scenario from TOML, called `name` in errors. File names in it are relative to `base_dir`."""
    @staticmethod
    def from_dict(
        fields: Mapping[str, Any], name: str = "scenario", base_dir: str | os.PathLike[str] = ...
    ) -> Scenario:
        """A scenario from a dict laid out as the file is."""
    def with_(self, set: list[str] = ..., seed: int | None = None, scheme: str | None = None) -> Scenario:
        """The same scenario with changes; `set` has `key=value` as for `--set`. They add to those made before."""
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    def to_toml(self) -> str:
        """Every field with its value, defaults included."""
    def check(self) -> dict[str, Any]:
        """Size of network and traffic, path counts, bounds (`..._ns`) and cost, before a run."""

@final
class Cancel:
    """Stops runs from another thread."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Every run that was given this ends where it is; its result says interrupted."""
    @property
    def cancelled(self) -> bool: ...

@final
class Progress:
    """How far a run has come."""

    done: float
    """Share of the run that is done, 0 to 1."""
    simulated_ns: float
    """Simulated time, nanoseconds."""
    packet_hops: int
    """Packets that crossed a link, so far."""
    flows_done: int
    flows_total: int
    elapsed_s: float
    """Wall-clock time since the start, seconds."""

@final
class Table:
    """A table of a run's records; anything that reads the Arrow C stream interface takes it as it is."""

    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]:
        """Names of the columns, with units last in them."""
    @property
    def description(self) -> list[tuple[str, str, str]]:
        """Of each column: name, unit ("" where there is none) and meaning."""
    def to_arrow(self) -> pyarrow.Table:
        """As a `pyarrow.Table`; nothing is copied."""
    def to_polars(self) -> polars.DataFrame:
        """As a `polars.DataFrame`; nothing is copied but texts."""
    def to_pandas(self) -> pandas.DataFrame:
        """As a `pandas.DataFrame`; columns of numbers in which none is missing are not copied."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class RunResult:
    """A run's records and their summary. Printing shows the table that `pathweave run` prints."""

    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def digest(self) -> str:
        """Of the event trace: the same for the same scenario and seed, on every machine."""
    @property
    def ended(self) -> str:
        """Why: "completed", "time_limit", "interrupted", ..."""
    @property
    def notes(self) -> list[str]:
        """Assumptions made about input files, input not used."""
    @property
    def summary(self) -> dict[str, Any]:
        """The figures of `summary.json`."""
    @property
    def flows(self) -> Table:
        """A row a flow."""
    @property
    def series(self) -> Table:
        """Samples of queues, rates and shares over time."""
    @property
    def events(self) -> Table:
        """Drops, pauses, faults."""
    @property
    def links(self) -> Table:
        """A row a direction of a link."""
    @property
    def jobs(self) -> Table:
        """A row a job."""
    def report_html(self) -> str:
        """The report: one page with everything in it."""
    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the folder that `pathweave run` writes. Raises `OSError`; nothing is left half-written."""

def run(
    scenario: Scenario,
    progress: Callable[[Progress], object] | None = None,
    cancel: Cancel | None = None,
    threads: int | None = None,
    cores: int | None = None,
) -> RunResult: ...

@final
class SweepRun:
    """A run of a sweep, with all that is needed to make it elsewhere."""

    key: str
    """Digest of what its outcome depends on."""
    label: str
    """Cell and seed, for people."""
    seed: int
    scenario: str
    """The scenario, complete, as TOML."""
    tables: list[str]
    """Tables that are kept of it."""

@final
class SweepFolder:
    """The folder of a sweep, locked while this lives."""

    @property
    def path(self) -> Path: ...
    def finished(self) -> list[str]:
        """Keys of the runs that are finished."""

    def put(self, key: str, files: dict[str, bytes]) -> None:
        """Keeps what `sweep_run` has returned for the run `key`."""

    def write(self, failed: dict[str, str]) -> dict[str, Any]:
        """Writes summary, tables and report; `failed` says why runs have failed, by key."""

@final
class Sweep:
    """A sweep: a scenario, the values its fields take, and the runs that makes."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Sweep:
        """Reads a sweep file. Raises `ScenarioError` with every mistake found."""

    @staticmethod
    def from_toml(text: str, name: str = "sweep.toml", base_dir: str | os.PathLike[str] = ...) -> Sweep: ...
    @staticmethod
    def from_dict(fields: Any, name: str = "sweep", base_dir: str | os.PathLike[str] = ...) -> Sweep: ...
    @property
    def name(self) -> str: ...
    @property
    def cells(self) -> list[dict[str, str]]:
        """Cells, each from the key of an axis to the value there."""

    @property
    def runs(self) -> list[SweepRun]:
        """What has to run, equal runs once."""

    def open(self, path: str | os.PathLike[str]) -> SweepFolder:
        """The folder `path` for this sweep. Raises `OSError` if it holds something else or is in use."""

def sweep_run(key: str, scenario: str, tables: list[str], cancel: Cancel | None = None) -> dict[str, bytes] | None:
    """Makes a run of a sweep and returns its files by name; `None` if it was cancelled."""

def comparison_table(runs: list[RunResult]) -> str: ...
def write_comparison(runs: list[RunResult], folder: str | os.PathLike[str]) -> Path: ...
def schemes() -> list[dict[str, Any]]:
    """All schemes: dicts with `name`, `help`, `source`, `aliases` and `fields`."""

def topologies() -> list[dict[str, Any]]:
    """All topologies, with their fields, defaults and units."""

def workloads() -> list[dict[str, Any]]:
    """All workloads, with their fields, defaults and units."""

def presets() -> list[dict[str, Any]]:
    """All presets: topologies, congestion control parameters, flow-size distributions."""

def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
