"""The compiled engine. Use it through the package `pathweave`."""

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import pandas
import polars
import pyarrow

from ._control import ControlLike
from ._picker import PickerLike
from ._plot import Plot

__all__ = [
    "Cancel",
    "CollectiveGroup",
    "CollectiveProcess",
    "CollectiveQueue",
    "CollectiveTicket",
    "Feedback",
    "Packet",
    "Path",
    "Progress",
    "QueuePair",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepFolder",
    "SweepRun",
    "Table",
    "__version__",
    "check_control",
    "check_picker",
    "comparison_brief",
    "comparison_table",
    "diff",
    "presets",
    "program",
    "run",
    "schema",
    "scheme_colours",
    "schemes",
    "settings",
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
    """A scenario: network, traffic, schemes and faults, complete and checked. It is immutable."""

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
    def with_(
        self,
        set: Sequence[str] | Mapping[str, Any] | None = None,
        seed: int | None = None,
        scheme: str | None = None,
    ) -> Scenario:
        """The same scenario with changes; `set` has `key=value` as for `--set`, or maps keys to values.

        They add to those made before.
        """
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
        """Ends every run that has this object; its result is marked interrupted."""
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
        """As a `pandas.DataFrame`; number columns without missing values are not copied."""
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
    @property
    def activities(self) -> Table:
        """What each host did: a row a computation, part in a collective, or run of messages."""
    @property
    def collectives(self) -> Table:
        """A row a collective: begin and end of its ranks, its bandwidth, its exposed time."""
    @property
    def layers(self) -> Table:
        """Computation and communication of ranks for each layer, and the exposed part."""
    @property
    def critical(self) -> Table:
        """Critical path of each job, step by step."""
    @property
    def waits(self) -> Table:
        """Time of the slowest flows by cause and link."""
    @property
    def plot(self) -> Plot:
        """Pictures of this run; needs the extra `pathweave[plots]`."""
    def table(self) -> str:
        """Every figure of the summary, as `pathweave run --all` prints it."""
    def report_html(self) -> str:
        """The report: one page with everything in it."""
    def write(self, folder: str | os.PathLike[str]) -> pathlib.Path:
        """Writes the folder that `pathweave run` writes. Raises `OSError`; nothing is left half-written."""

def settings(set: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Settings as `key=value`, from a list of them or a mapping. Raises `TypeError` for anything else."""

def run(
    scenario: Scenario,
    progress: Callable[[Progress], object] | None = None,
    cancel: Cancel | None = None,
    threads: int | None = None,
    cores: int | None = None,
    picker: PickerLike | None = None,
    control: ControlLike | None = None,
) -> RunResult: ...

@final
class QueuePair:
    """The queue pair that a picker or a congestion control belongs to."""

    seed: int
    """Seed of this picker's random numbers, 64 bits: different for each queue pair, the same in each run.

    0 for a control."""
    paths: int
    """Paths it may choose from: 0 to `paths - 1`."""
    line_rate_bps: int
    """Rate of the NIC port, bits per second."""
    base_rtt_ps: int
    """Round-trip time to the peer when the fabric is idle, picoseconds."""
    mtu_payload_bytes: int
    """Payload of a full packet, bytes."""
    mtu_wire_bytes: int
    """Bytes of a full packet on the wire."""

@final
class Packet:
    """A data packet that is about to leave, or has left."""

    psn: int
    """Packet sequence number."""
    message: int
    """Message it belongs to; a number that rises with each message of the queue pair."""
    payload_bytes: int
    """Payload, bytes."""
    wire_bytes: int
    """Bytes on the wire."""
    retransmit: bool
    """Whether it was sent before."""
    inflight_packets: int
    """Data packets sent and neither acknowledged nor declared lost; this one counts once it has left."""

@final
class Feedback:
    """Feedback on a packet or a path."""

    kind: str
    """"ack", "cnp", "lost", "trimmed", "timeout", "midway", "echo", "heard", "late" or "notices"."""
    path: int
    """The path it is about."""
    psn: int | None
    """Packet sequence number; None where it is about no packet."""
    marked: bool
    """Whether congestion was marked: Congestion Experienced, or a notification."""
    rtt_ps: int | None
    """Round-trip time measured, picoseconds; None where nothing was."""
    one_way_ps: int | None
    """Receiver's stamp minus sender's, picoseconds, up to a constant offset of the clocks; None if not measured."""
    wire_bytes: int
    """Bytes of the packet on the wire."""
    inflight_packets: int
    """Data packets in flight after this."""
    backlogged: bool
    """Whether the queue pair still has data to send."""
    memo: int
    """What `on_sent` returned for this packet; 0 where it returned None."""

@final
class Path:
    """What is known of a path."""

    path: int
    """Its number."""
    up: bool
    """Whether it is known to work."""
    usable: bool
    """Whether `pick` may return it: it is up, or none is."""
    base_rtt_ps: int | None
    """Round-trip time of a full packet when idle, picoseconds; None where the sender does not know it."""
    base_one_way_ps: int | None
    """The same one way, picoseconds."""
    rate_bps: int | None
    """Rate of its slowest link, bits per second."""
    links: int | None
    """Links from host to host."""

def check_control(control: ControlLike, seeds: int = 12) -> None:
    """Puts a congestion control through the situations and random operations that every one of the engine passes.

    Raises:
        AssertionError: It breaks the contract, or sends other packets with the same seed.
        Exception: What the control itself raises.
    """

def check_picker(picker: PickerLike, seeds: int = 12) -> None:
    """Runs a picker through the tests of the engine's own pickers, without a network.

    These are the situations of the policy tests (steady, one path marks, one path dies, losses, ...), each played twice
    with the same outcome, and `seeds` sequences of random operations.

    Raises:
        AssertionError: It breaks the contract, or takes other paths with the same seed.
        Exception: What the picker itself raises.
    """

def program(started_by: list[str], libraries: str, args: list[str]) -> int:
    """Runs the program with `args`, the first of which is its name, and returns its exit code.

    `started_by` are the words that start it again, for processes that it needs beside itself.
    `libraries` is the folder of the libraries that are packaged with it: libfabric provider, NCCL's plug-in.
    """

@final
class SweepRun:
    """A run of a sweep, with all that is needed to make it elsewhere."""

    key: str
    """Digest of everything on which its outcome depends."""
    label: str
    """Cell and seed, for people."""
    seed: int
    scenario: str
    """The scenario, complete, as TOML."""
    tables: list[str] | None
    """Tables that are kept of it."""

@final
class SweepFolder:
    """The folder of a sweep, locked while this lives."""

    @property
    def path(self) -> pathlib.Path: ...
    def finished(self) -> list[str]:
        """Keys of the runs that are finished."""

    def put(self, key: str, files: dict[str, bytes]) -> None:
        """Keeps what `sweep_run` has returned for the run `key`."""

    def write(self, failed: dict[str, str]) -> dict[str, Any]:
        """Writes summary, tables and report; `failed` has the reasons of failed runs, by key."""

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
        """The folder `path` for this sweep. Raises `OSError` if it has other content or is in use."""

def sweep_run(
    key: str, scenario: str, tables: list[str] | None, cancel: Cancel | None = None
) -> dict[str, bytes] | None:
    """Makes a run of a sweep and returns its files by name; `None` if it was cancelled."""

def comparison_brief(runs: list[RunResult]) -> str: ...
def comparison_table(runs: list[RunResult]) -> str: ...
def diff(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Differences between two result folders, and their table for a terminal."""

def scheme_colours(names: list[str]) -> list[str]:
    """Colours of curves, as "#rrggbb": a scheme has the one that it has on pages."""

def write_comparison(runs: list[RunResult], folder: str | os.PathLike[str]) -> pathlib.Path: ...
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

@final
class CollectiveTicket:
    """Operation that has been started."""

    def is_done(self) -> bool: ...
    def error(self) -> str | None:
        """Reason of the failure, if it has failed."""

    def source(self) -> int | None:
        """Rank that a message came from."""

    def wait(self, seconds: float) -> None:
        """Waits for the end. If there is none within so many seconds of this call, the operation fails."""

    def wait_in_time(self, seconds: float) -> None:
        """Waits for the end. If there is none within so many seconds of the start, the operation fails."""

@final
class CollectiveGroup:
    """Group of processes. Memory is given by address and bytes; `keep` keeps it alive."""

    def begun(self) -> int: ...
    def abort(self, reason: str) -> None: ...
    def all_reduce(self, op: str, dtype: str, tensor: tuple[int, int], keep: Any) -> CollectiveTicket: ...
    def reduce(self, op: str, dtype: str, root: int, tensor: tuple[int, int], keep: Any) -> CollectiveTicket: ...
    def reduce_scatter(
        self, op: str, dtype: str, blocks: list[tuple[int, int]], to: tuple[int, int], keep: Any
    ) -> CollectiveTicket: ...
    def broadcast(self, dtype: str, root: int, tensor: tuple[int, int], keep: Any) -> CollectiveTicket: ...
    def all_gather(
        self, dtype: str, own: tuple[int, int], all: list[tuple[int, int]], keep: Any
    ) -> CollectiveTicket: ...
    def all_to_all(
        self, dtype: str, to: list[tuple[int, int]], from_: list[tuple[int, int]], keep: Any
    ) -> CollectiveTicket: ...
    def gather(
        self, dtype: str, root: int, own: tuple[int, int], all: list[tuple[int, int]], keep: Any
    ) -> CollectiveTicket: ...
    def scatter(
        self, dtype: str, root: int, own: tuple[int, int], all: list[tuple[int, int]], keep: Any
    ) -> CollectiveTicket: ...
    def barrier(self) -> CollectiveTicket: ...
    def send(self, dtype: str, to: int, tag: int, tensor: tuple[int, int], keep: Any) -> CollectiveTicket: ...
    def receive(
        self, dtype: str, source: int | None, tag: int, tensor: tuple[int, int], keep: Any
    ) -> CollectiveTicket: ...

@final
class CollectiveProcess:
    """Device of this process, which carries the collectives of all groups."""

    def __new__(cls) -> CollectiveProcess: ...
    def record(self) -> str: ...
    def join(self, rank: int, records: list[str]) -> CollectiveGroup: ...
    def copies(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

@final
class CollectiveQueue:
    """Numbers of tickets in the order in which they end."""

    def __new__(cls) -> CollectiveQueue: ...
    def add(self, ticket: CollectiveTicket, number: int) -> None: ...
    def put(self, number: int) -> None: ...
    def next(self, seconds: float) -> int | None: ...
