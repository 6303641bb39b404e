"""Differences between result folders."""

import subprocess
import sys
from pathlib import Path

import pytest

import pathweave as pw

# Two hosts and one switch: with links of 50 Gb/s, everything but latency takes twice as long as with 100 Gb/s.
ONE_FLOW = {
    "name": "one flow",
    "topology": {"kind": "star", "hosts": 2, "rate": "100Gbps"},
    "workload": [{"kind": "permutation", "size": "100MB"}],
}


def made(folder: Path, scheme: str, rate: str, size: str = "100MB") -> Path:
    scenario = pw.Scenario.from_dict(ONE_FLOW)
    changes = [f'topology.rate="{rate}"', f'workload[0].size="{size}"']
    pw.run(scenario, scheme=scheme, set=changes, progress=False).write(folder)
    return folder


def test_half_the_rate_takes_twice_as_long(tmp_path: Path) -> None:
    fast, slow = made(tmp_path / "fast", "ecmp", "100Gbps"), made(tmp_path / "slow", "ecmp", "50Gbps")
    found = pw.diff(fast, slow)
    assert found.settings == [{"field": "topology.rate", "a": "100Gbps", "b": "50Gbps", "runs": []}]
    times = next(row for row in found.results if row["figure"] == "job_time_ns")
    # 100 MB at 100 Gb/s are 8 ms, besides headers and some microseconds of latency.
    assert 8e6 < times["a"] < 8.4e6
    assert times["change_ratio"] == pytest.approx(times["b"] / times["a"] - 1)
    assert times["change_ratio"] == pytest.approx(1, abs=0.01)
    assert found.sentence.startswith("B has a longer job time: ") and found.sentence.endswith("One setting differs.")
    assert found.only_in_a == found.only_in_b == [] and found.versions == ([pw.__version__],) * 2
    frame = found.to_polars()
    assert frame.filter(frame["figure"] == "job_time_ns")["b"].to_list() == [times["b"]]
    # From B to A, half of it is gone.
    back = pw.diff(pw.load(slow), pw.load(fast))
    assert "(-50 %)" in back.sentence
    assert repr(back) == f"<Difference: {back.sentence}>"


def test_it_says_what_the_program_says(tmp_path: Path) -> None:
    a, b = made(tmp_path / "a", "ecmp", "100Gbps", "1MB"), made(tmp_path / "b", "rps", "100Gbps", "1MB")
    said = subprocess.run(
        [sys.executable, "-m", "pathweave", "diff", a, b], capture_output=True, text=True, check=True
    ).stdout
    found = pw.diff(a, b)
    assert " ".join(found.sentence.split()) in " ".join(said.split())
    table = str(found).removeprefix(found.sentence + "\n")
    assert table in said
    same = pw.diff(a, a)
    assert same.sentence == "The results are equal: so is each digest. No setting differs." and not same.settings


def test_comparisons_pair_runs_by_name(small: pw.Scenario, tmp_path: Path) -> None:
    pw.compare(small, ["rps", "ecmp"], progress=False).write(tmp_path / "a")
    pw.compare(small, ["ecmp", "udmp"], progress=False).write(tmp_path / "b")
    found = pw.diff(tmp_path / "a", tmp_path / "b")
    assert (found.only_in_a, found.only_in_b) == (["rps"], ["udmp"])
    assert {row["run"] for row in found.results} == {"ecmp"}
    assert all(row["change_ratio"] == 0 for row in found.results if row["a"])


def test_folders_that_are_no_results_are_errors(small: pw.Scenario, tmp_path: Path) -> None:
    run = tmp_path / "results" / "run"
    pw.run(small, progress=False).write(run)
    with pytest.raises(ValueError, match="none: it has no results: there is no such folder; name a folder that"):
        pw.diff(run, tmp_path / "none")
    with pytest.raises(ValueError, match=r"it has no results: there is no summary\.json; .*; here: .*run"):
        pw.diff(tmp_path / "results", run)
    with pytest.raises(ValueError, match="it has no results: it is a file"):
        pw.diff(run, run / "summary.json")
    (run / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match="it is not the summary of a run, a comparison or a sweep"):
        pw.diff(run, run)
