"""Result folders read back, and own pickers and controls beside schemes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import pathweave as pw


class First(pw.Picker):
    """The lowest path: all packets of a queue pair go the same way."""

    def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
        return paths[0]


class OnePacket(pw.CongestionControl):
    """One packet in flight."""

    def __init__(self, queue_pair: pw.QueuePair) -> None:
        super().__init__(queue_pair)
        self.window_bytes = queue_pair.mtu_wire_bytes


def test_a_run_is_read_back(small: pw.Scenario, tmp_path: Path) -> None:
    result = pw.run(small, progress=False)
    result.write(tmp_path / "run")
    loaded = pw.load(tmp_path / "run")
    assert isinstance(loaded, pw.LoadedRun)
    assert (loaded.name, loaded.digest) == (result.name, result.digest)
    assert loaded.summary["overall"] == result.summary["overall"]
    assert loaded.scan().collect().equals(result.flows.to_polars())
    assert pw.Scenario.from_toml(loaded.scenario).name == small.name
    with pytest.raises(ValueError, match="table is 'flow'; expected one of activities"):
        loaded.scan("flow")


def test_comparisons_and_sweeps_are_read_back(small: pw.Scenario, tmp_path: Path) -> None:
    pw.compare(small, ["rps", "ecmp"], progress=False).write(tmp_path / "both")
    loaded = pw.load(tmp_path / "both")
    assert isinstance(loaded, pw.LoadedComparison)
    assert loaded.schemes == ["rps", "ecmp"] and loaded["ecmp"].name == "ecmp" and len(loaded) == 2
    assert "job time" in loaded.verdict
    with pytest.raises(KeyError, match="the comparison has rps, ecmp"):
        loaded["reps"]
    star = {"topology": {"kind": "star", "hosts": 2}, "workload": [{"kind": "permutation", "size": "1KB"}]}
    sweep = {"scenario": star, "grid": [{"key": "scheme", "values": ["ecmp", "rps"]}]}
    made = pw.sweep(sweep, out=tmp_path / "sweep", progress=False)
    found = pw.load(tmp_path / "sweep")
    assert isinstance(found, pw.SweepResult) and found.digest == made.digest


def test_folders_without_results_are_errors(small: pw.Scenario, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is not there; expected a result folder"):
        pw.load(tmp_path / "none")
    pw.run(small, progress=False).write(tmp_path / "run")
    with pytest.raises(ValueError, match=r"no summary\.json; here: .*run"):
        pw.load(tmp_path)
    (tmp_path / "run" / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match=r"schema is None; expected one of pathweave\.summary"):
        pw.load(tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text("{")
    with pytest.raises(ValueError, match="the summary is not JSON"):
        pw.load(tmp_path / "run")


def test_own_pickers_and_controls_stand_beside_schemes(small: pw.Scenario) -> None:
    both = {"pickers": {"first": First, "slow": First}, "controls": {"slow": OnePacket}}
    compared = pw.compare(small, ["ecmp", "rps"], **both, base="rps", progress=False)  # type: ignore[arg-type]
    assert compared.schemes == ["ecmp", "rps", "first", "slow"]
    alone = pw.run(small, scheme="rps", picker=First, progress=False)
    assert compared["first"].digest == alone.digest
    times = {name: compared[name].summary["jobs"]["time_ns"] for name in compared}
    # One packet in flight waits a round trip for each.
    assert times["slow"] > 2 * times["first"] > 0
    assert "slow" in str(compared)
    only = pw.compare(small, pickers={"first": First}, base="rps", progress=False)
    assert only.schemes == ["first"]
    with pytest.raises(ValueError, match="has the name of the scheme 'rps'"):
        pw.compare(small, ["rps"], pickers={"rps": First})
    with pytest.raises(ValueError, match="at least one scheme, picker or control"):
        pw.compare(small)
    with pytest.raises(TypeError, match=r"schemes is the text 'ecmp'; expected a list of names, such as \['ecmp'\]"):
        pw.compare(small, "ecmp")
