"""Sweeps: the same datasets as the program's, here and by Dask."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pathweave as pw
from pathweave.__main__ import main

SWEEP: dict[str, Any] = {
    "seeds": 2,
    "scenario": {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "permutation", "size": "10KB"}],
    },
    "grid": [
        {"key": "scheme", "values": ["ecmp", "rps"]},
        {"key": "workload[0].size", "values": ["10KB", "20KB"]},
    ],
}

FILE = """
seeds = 2
[scenario.topology]
kind = "star"
hosts = 4
[[scenario.workload]]
kind = "permutation"
size = "10KB"
[[grid]]
key = "scheme"
values = ["ecmp", "rps"]
[[grid]]
key = "workload[0].size"
values = ["10KB", "20KB"]
"""


def times(path: Path) -> dict[str, int]:
    return {run.name: (run / "run.json").stat().st_mtime_ns for run in (path / "runs").iterdir()}


def test_a_sweep_and_its_tables(tmp_path: Path) -> None:
    result = pw.sweep(SWEEP, out=tmp_path / "out", jobs=2, progress=False)
    assert not result.partial and not result.failed and result.summary["finished_runs"] == 8
    runs = result.scan("runs").collect()
    assert len(runs) == 8 and set(runs["scheme"]) == {"ecmp", "rps"}
    summary = result.scan().collect()
    row = summary.filter((summary["cell"] == 0) & (summary["metric"] == "fct_max_ns"))
    of_cell = runs.filter(runs["cell"] == 0)["fct_max_ns"]
    assert row["mean"][0] == pytest.approx(of_cell.mean()) and row["runs"][0] == 2
    flows = result.scan("flows").collect()
    assert len(flows) == 8 * 4
    # The column of the settings stands beside that of the tables where both have one of a name.
    assert (flows["scheme"] == flows["scheme_of_sweep"]).all()
    assert (flows["size_bytes"] == flows["workload[0].size"].str.replace("KB", "000").cast(int)).all()


def test_runs_are_kept_whole_where_the_sweep_says_so(tmp_path: Path) -> None:
    result = pw.sweep({**SWEEP, "seeds": 1, "report": {"runs": "kept"}}, out=tmp_path / "out", progress=False)
    assert result.summary["finished_runs"] == 4
    for run in (tmp_path / "out" / "runs").iterdir():
        names = {file.name for file in run.iterdir()}
        assert {"run.json", "summary.json", "report.html", "activities.parquet"} <= names
    tables = pw.sweep(
        {**SWEEP, "seeds": 1, "tables": ["activities", "critical"]}, out=tmp_path / "some", progress=False
    )
    assert tables.scan("activities").collect() is not None
    assert tables.scan("critical").collect() is not None


def test_nothing_runs_twice_and_a_stop_keeps_what_is_done(tmp_path: Path) -> None:
    whole = pw.sweep(SWEEP, out=tmp_path / "whole", progress=False)
    plan = pw.Sweep.from_dict(SWEEP)
    folder = plan.open(tmp_path / "out")
    for run in plan.runs[:3]:
        files = pw._pathweave.sweep_run(run.key, run.scenario, run.tables)
        assert files is not None
        folder.put(run.key, files)
    partial = folder.write({})
    assert partial["partial"] and partial["finished_runs"] == 3
    with pytest.raises(OSError, match="another sweep"):
        pw.sweep(SWEEP, out=tmp_path / "out", progress=False)
    del folder
    before = times(tmp_path / "out")
    result = pw.sweep(SWEEP, out=tmp_path / "out", progress=False)
    after = times(tmp_path / "out")
    assert result.digest == whole.digest and len(after) == 8
    assert all(after[name] == at for name, at in before.items())


def test_the_program_and_the_package_make_one_dataset(tmp_path: Path) -> None:
    program = os.environ.get("PATHWEAVE_PROGRAM")
    if program is None:
        pytest.skip("PATHWEAVE_PROGRAM names no program to compare with")
    (tmp_path / "sweep.toml").write_text(FILE)
    command: list[str | Path] = [program, "sweep", tmp_path / "sweep.toml", "--out", tmp_path / "cli", "--quiet"]
    subprocess.run(command, check=True)
    before = times(tmp_path / "cli")
    ours = pw.sweep(SWEEP, out=tmp_path / "python", progress=False)
    assert json.loads((tmp_path / "cli" / "summary.json").read_text())["digest"] == ours.digest
    # Either goes on with what the other has begun.
    again = pw.sweep(tmp_path / "sweep.toml", out=tmp_path / "cli", progress=False)
    assert times(tmp_path / "cli") == before and again.digest == ours.digest


def test_mistakes_and_failed_cells(tmp_path: Path) -> None:
    wrong = {**SWEEP, "grid": [{"key": "scheme", "values": ["rsp"]}]}
    with pytest.raises(pw.ScenarioError, match="did you mean `rps`"):
        pw.sweep(wrong, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    incast = {
        "scenario": {**SWEEP["scenario"], "workload": [{"kind": "incast", "senders": 1, "size": "10KB"}]},
        "grid": [{"key": "topology.hosts", "values": [2, 4]}, {"key": "workload[0].senders", "values": [1, 3]}],
    }
    result = pw.sweep(incast, out=tmp_path / "out", progress=False)
    assert list(result.failed) == ["topology.hosts=2, workload[0].senders=3"]
    assert result.summary["finished_runs"] == 3


def test_a_run_that_would_be_another_one_is_refused() -> None:
    run = pw.Sweep.from_dict(SWEEP).runs[0]
    with pytest.raises(RuntimeError, match="another run"):
        pw._pathweave.sweep_run("0" * 32, run.scenario, run.tables)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(FILE)

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pathweave", "sweep", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    assert call("sweep.toml", "--out", "out", "--quiet").returncode == 0
    again = call("sweep.toml", "--out", "out", "--jobs", "1")
    assert again.returncode == 0 and "dataset digest: " in again.stdout
    ours = pw.sweep(tmp_path / "sweep.toml", out=tmp_path / "out", progress=False)
    assert ours.digest in again.stdout
    missing = call("none.toml")
    assert missing.returncode == 2 and "cannot read" in missing.stderr


def test_the_command_with_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "--scheduler=tcp://127.0.0.1:1"])
    assert ended.value.code == 2 and "SWEEP" in capsys.readouterr().err
    assert main(["sweep", str(tmp_path / "none.toml"), "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_dask_makes_the_same_dataset(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra pathweave[dask] is not installed")
    here = pw.sweep(SWEEP, out=tmp_path / "here", progress=False)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp"
        ) as cluster,
    ):
        by_address = pw.sweep(SWEEP, out=tmp_path / "dask", scheduler=cluster.scheduler_address, progress=False)
        assert by_address.digest == here.digest and not by_address.partial
        with distributed.Client(cluster) as client:
            again = pw.sweep(SWEEP, out=tmp_path / "dask", scheduler=client, progress=False)
            assert again.digest == here.digest
            assert client.status == "running", "a client that is given stays open"
    assert threading.active_count() < 100
