"""Runs and their results."""

import json
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pyarrow
import pytest

import pathweave as pw
from conftest import ROOT

LONG = ["topology.hosts_per_leaf=16", "workload[0].size=256MB"]


def test_the_tables_say_what_the_summary_says(small: pw.Scenario) -> None:
    result = pw.run(small, progress=False)
    flows = result.flows.to_polars()
    assert result.ended == "completed" and len(flows) == len(result.flows) == 4
    assert flows["size_bytes"].to_list() == [64_000] * 4
    measured = result.summary["overall"]
    assert measured["fct_ns"]["max"] == pytest.approx(flows["fct_ns"].max())
    assert measured["slowdown"]["mean"] == pytest.approx(flows["slowdown"].mean())
    assert (flows["slowdown"] >= 1.0).all()


def test_threads_do_not_show(small: pw.Scenario) -> None:
    alone, together = (pw.run(small, threads=threads, progress=False) for threads in (1, 3))
    assert together.digest == alone.digest
    assert together.flows.to_polars().equals(alone.flows.to_polars())
    compared = pw.compare(small, ["rps", "ecmp"], threads=2, progress=False)
    assert compared["ecmp"].digest == pw.run(small, scheme="ecmp", progress=False).digest
    with pytest.raises(ValueError, match="threads is 0; expected 1 or more"):
        pw.run(small, threads=0, progress=False)


def test_numbers_out_of_range_name_the_argument_and_its_range(small: pw.Scenario) -> None:
    with pytest.raises(ValueError, match="threads is -1; expected 1 or more, at most 65535"):
        pw.run(small, threads=-1, progress=False)
    for seed in (-1, 2**63, -(2**70)):
        with pytest.raises(ValueError, match=f"seed is {seed}; expected 0 or more, at most {2**63 - 1}"):
            pw.run(small, seed=seed, progress=False)
    with pytest.raises(TypeError, match=r"seed is 1\.5; expected a whole number"):
        pw.run(small, seed=1.5, progress=False)  # type: ignore[arg-type]
    for jobs in (-1, 0):
        with pytest.raises(ValueError, match=f"jobs is {jobs}; expected 1 or more"):
            pw.compare(small, ["rps"], jobs=jobs, progress=False)
    assert pw.run(small, seed=2**63 - 1, progress=False).seed == 2**63 - 1


def test_settings_are_a_list_or_a_mapping(small: pw.Scenario) -> None:
    listed = small.with_(set=["topology.hosts_per_leaf=4", 'workload[0].size="8KB"', "run.until=5ms"])
    mapped = small.with_(set={"topology.hosts_per_leaf": 4, "workload[0].size": "8KB", "run.until": "5ms"})
    assert mapped.to_toml() == listed.to_toml() != small.to_toml()
    star = {"topology": {"kind": "star", "hosts": 3}}
    assert pw.run(small, set=star, progress=False).summary["overall"]["count"] == 3
    assert pw.compare(small, ["rps"], set=star, progress=False)["rps"].summary["overall"]["count"] == 3
    for call in (
        lambda wrong: pw.run(small, set=wrong),
        lambda wrong: pw.compare(small, ["rps"], set=wrong),
        lambda wrong: small.with_(set=wrong),
    ):
        with pytest.raises(TypeError, match=r"set is the text 'run.until=1ms'; expected a list or a mapping"):
            call("run.until=1ms")
        with pytest.raises(TypeError, match=r"set is \[1\]; expected a list or a mapping"):
            call([1])
        with pytest.raises(TypeError, match=r'set\["run.until"\] is no value of a field'):
            call({"run.until": object()})


def test_messages_run_as_packets_and_as_fluids(small: pw.Scenario) -> None:
    fluid = pw.run(small, fidelity="flow", progress=False)
    assert fluid.summary["run"]["fidelity"] == "flow"
    both = pw.compare(small, ["rps", "ecmp"], fidelity=["packet", "flow"], progress=False)
    assert both.schemes == ["rps packet", "rps flow", "ecmp packet", "ecmp flow"]
    assert both["rps packet"].digest == pw.run(small, scheme="rps", progress=False).digest
    assert both["ecmp flow"].digest == pw.run(small, scheme="ecmp", fidelity="flow", progress=False).digest
    assert pw.compare(small, fidelity=["flow"], progress=False).schemes == ["flow"]
    with pytest.raises(ValueError, match="fidelity names 'flow' twice; name each once"):
        pw.compare(small, fidelity=["flow", "flow"])
    with pytest.raises(pw.ScenarioError, match="fluid"):
        pw.run(small, fidelity="fluid", progress=False)  # type: ignore[arg-type]


def test_frames_of_every_library_agree(small: pw.Scenario) -> None:
    table = pw.run(small, progress=False).links
    arrow, polars, pandas = table.to_arrow(), table.to_polars(), table.to_pandas()
    assert arrow.column_names == polars.columns == list(pandas.columns) == table.columns
    assert arrow["tx_bytes"].to_pylist() == polars["tx_bytes"].to_list() == pandas["tx_bytes"].tolist()
    assert arrow.schema.field("tx_bytes").metadata[b"unit"] == b"B"
    assert [name for name, _, meaning in table.description if not meaning] == []


def test_no_library_copies_the_columns(small: pw.Scenario) -> None:
    table = pw.run(small, progress=False).flows
    (chunk,) = pyarrow.table(table)["size_bytes"].chunks
    address = chunk.buffers()[1].address
    assert table.to_arrow()["size_bytes"].chunks[0].buffers()[1].address == address
    assert table.to_polars()["size_bytes"].to_numpy(allow_copy=False).__array_interface__["data"][0] == address
    assert table.to_pandas()["size_bytes"].to_numpy().__array_interface__["data"][0] == address


def test_arrow_is_handed_over_by_the_stream_interface(small: pw.Scenario) -> None:
    result = pw.run(small, progress=False)
    for table in (
        result.flows,
        result.series,
        result.events,
        result.links,
        result.jobs,
        result.activities,
        result.collectives,
        result.layers,
        result.critical,
        result.waits,
    ):
        reader = pyarrow.RecordBatchReader.from_stream(table)
        assert sum(batch.num_rows for batch in reader) == len(table)


def test_the_program_gives_the_same_digest_and_folder(tmp_path: Path) -> None:
    program = os.environ.get("PATHWEAVE_PROGRAM")
    if program is None:
        pytest.skip("PATHWEAVE_PROGRAM names no program to compare with")
    scenario = ROOT / "scenarios" / "quickstart.toml"
    told = subprocess.run(
        [program, "run", scenario, "--quiet", "--out", tmp_path / "cli"], capture_output=True, check=True
    )
    assert told.returncode == 0
    result = pw.run(scenario, progress=False)
    assert result.write(tmp_path / "python") == tmp_path / "python"
    ours, theirs = (json.loads((tmp_path / who / "summary.json").read_text()) for who in ("python", "cli"))
    assert ours["overall"] == theirs["overall"]
    assert ours["run"]["version"] == theirs["run"]["version"] == pw.__version__
    assert min(one["run"]["peak_rss_bytes"] for one in (ours, theirs)) > 1_000_000
    assert ours["run"]["digest"] == theirs["run"]["digest"] == result.digest
    assert sorted(p.name for p in (tmp_path / "python").iterdir()) == sorted(
        p.name for p in (tmp_path / "cli").iterdir()
    )


def test_a_folder_that_holds_something_else_is_not_touched(small: pw.Scenario, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OSError, match=str(tmp_path)):
        pw.run(small, progress=False).write(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_report_is_one_page(small: pw.Scenario) -> None:
    page = pw.run(small, progress=False).report_html()
    assert page.lstrip().lower().startswith("<!doctype html>") and "<script src=" not in page


def test_schemes_are_compared_over_the_same_traffic(small: pw.Scenario, tmp_path: Path) -> None:
    comparison = pw.compare(small, ["ecmp", "rps"], progress=False)
    assert list(comparison) == comparison.schemes == ["ecmp", "rps"]
    sizes = [comparison[s].flows.to_polars().select("src_host", "dst_host", "size_bytes") for s in comparison]
    assert sizes[0].equals(sizes[1])
    assert comparison["rps"].digest == pw.run(small, scheme="rps", progress=False).digest
    verdict, *table = str(comparison).splitlines()
    assert "ecmp" in verdict and "rps" in verdict and len(table) < 12
    assert len(comparison.table().splitlines()) > 40
    assert str(comparison["rps"]).count("\n") < len(comparison["rps"].table().splitlines())
    comparison.write(tmp_path / "both")
    assert (tmp_path / "both" / "rps" / "flows.parquet").exists()
    with pytest.raises(ValueError, match="twice"):
        pw.compare(small, ["ecmp", "ecmp"])
    with pytest.raises(pw.ScenarioError, match="rsp"):
        pw.compare(small, ["ecmp", "rsp"])


def test_progress_rises_and_what_the_callback_raises_comes_out(small: pw.Scenario) -> None:
    seen: list[pw.Progress] = []
    pw.run(small.with_(set=["topology.hosts_per_leaf=16", "workload[0].size=8MB"]), progress=seen.append)
    done = [p.done for p in seen]
    assert done == sorted(done) and all(0 <= d <= 1 for d in done)

    def broken(_: pw.Progress) -> None:
        raise RuntimeError("the callback is broken")

    with pytest.raises(RuntimeError, match="callback is broken"):
        pw.run(small.with_(set=LONG), progress=broken)


def test_progress_in_a_notebook_is_html_that_stays(monkeypatch: pytest.MonkeyPatch, small: pw.Scenario) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, page: str) -> None:
            shown.append(page)

    def display(page: str, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(page)
        return Handle()

    ipython, of_display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    of_display.HTML, of_display.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    pw.run(small.with_(set=['name="<mine>"']))
    assert "&lt;mine&gt;" in shown[0]
    assert 'value="0.000"' in shown[0]
    assert "100%" in shown[-1]
    assert "completed" in shown[-1]


def test_another_thread_can_stop_a_run_and_gets_its_turn_meanwhile(small: pw.Scenario) -> None:
    cancel, results = pw.Cancel(), []
    thread = threading.Thread(
        target=lambda: results.append(pw.run(small.with_(set=LONG), progress=False, cancel=cancel))
    )
    thread.start()
    # If the run held the interpreter's lock, this would not be reached before its end.
    cancel.cancel()
    thread.join()
    assert cancel.cancelled and results[0].ended == "interrupted"


def test_ctrl_c_stops_a_run(small: pw.Scenario) -> None:
    # Python leaves it ignored if the shell that started the tests in the background did.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pw.run(small.with_(set=LONG), progress=lambda _: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
