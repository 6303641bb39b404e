"""Pictures of results, without a screen."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pathweave as pw

matplotlib = pytest.importorskip("matplotlib", reason="the extra pathweave[plots] is not installed")


@pytest.fixture(autouse=True)
def no_screen() -> Iterator[None]:
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def result() -> pw.RunResult:
    """Eight hosts with one link that fails and is repaired, sampled."""
    fields = {
        "name": "plotted",
        "scheme": "rps",
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "workload": [
            {"kind": "permutation", "size": "256KB", "group": "long"},
            {"kind": "incast", "senders": 3, "size": "16KB", "group": "short"},
        ],
        "fault": [{"kind": "link-down", "link": "leaf0-spine0", "at": "10us", "up_at": "60us"}],
        "observe": {"interval": "2us"},
    }
    return pw.run(fields, progress=False)


def is_picture(axes: Any, path: Path) -> bool:
    axes.get_figure().savefig(path)
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


def test_the_distribution(result: pw.RunResult, tmp_path: Path) -> None:
    axes: Any = result.plot.cdf("fct_ns")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Flow completion time (us)", "Fraction of flows")
    assert axes.get_title() == "plotted" and is_picture(axes, tmp_path / "cdf.png")
    (line,) = axes.get_lines()
    times = result.flows.to_polars()["fct_ns"]
    assert len(times) == 11
    assert line.get_xdata().max() == pytest.approx(max(times) / 1e3)
    assert line.get_ydata().max() == 1.0
    groups: Any = result.plot.cdf(by="group")
    assert [text.get_text() for text in groups.get_legend().get_texts()] == ["long", "short"]
    assert result.plot.cdf(log=True).get_xscale() == "log"
    _, ours = matplotlib.pyplot.subplots()
    assert result.plot.cdf(ax=ours) is ours


def test_senders_against_receivers(result: pw.RunResult, tmp_path: Path) -> None:
    axes: Any = result.plot.heatmap("goodput_bps")
    assert is_picture(axes, tmp_path / "heatmap.png")
    (image,) = axes.get_images()
    shown = image.get_array()
    flows = result.flows.to_polars()
    pairs = flows.group_by("src_host", "dst_host").agg(pl.col("goodput_bps").mean())
    assert shown.shape == (8, 8) and shown.count() == len(pairs)
    for row in pairs.iter_rows(named=True):
        assert shown[row["src_host"], row["dst_host"]] == pytest.approx(row["goodput_bps"] / 1e9)


def test_when_flows_were_under_way(result: pw.RunResult, tmp_path: Path) -> None:
    axes: Any = result.plot.timeline()
    assert is_picture(axes, tmp_path / "timeline.png")
    (lines,) = axes.collections
    flows = result.flows.to_polars()
    drawn = [(segment[0][0], segment[1][0]) for segment in lines.get_segments()]
    told = sorted(zip(flows["start_ns"] / 1e3, flows["finish_ns"] / 1e3, strict=True))
    assert sorted(drawn) == [pytest.approx(pair) for pair in told]
    assert [line.get_xdata()[0] for line in axes.get_lines()] == pytest.approx([10.0, 60.0]), "fault and repair"


def test_samples_over_time(result: pw.RunResult, tmp_path: Path) -> None:
    axes: Any = result.plot.series("queue_bytes", most=3)
    assert is_picture(axes, tmp_path / "series.png")
    series = result.series.to_polars()
    queues = series.filter(series["kind"].cast(str) == "queue_bytes")
    curves = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
    assert len(curves) == 3 and f"the 3 highest of {queues['entity'].n_unique()}" in axes.get_title()
    unit = {"Queue (B)": 1, "Queue (kB)": 1e3, "Queue (MB)": 1e6}[axes.get_ylabel()]
    assert max(curves[0].get_ydata()) == pytest.approx(max(queues["value"]) / unit)
    first = axes.get_legend().get_texts()[0].get_text()
    links = result.links.to_polars()
    highest = queues.sort("value", descending=True)["entity"][0]
    assert first == f"{links['from'][highest]} to {links['to'][highest]}"
    instants = series.filter(series["kind"].cast(str) == "interval_ns")
    assert all(len(line.get_xdata()) == len(instants) for line in curves)


def test_several_runs_in_one_picture(small: pw.Scenario, tmp_path: Path) -> None:
    both = pw.compare(small, ["ecmp", "rps"], progress=False)
    axes: Any = both.plot.cdf()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ecmp", "rps"]
    assert is_picture(axes, tmp_path / "both.png")
    assert [line.get_color() for line in axes.get_lines()] == ["#6b7280", "#5b4b9a"], "as in web/src/style.css"
    assert both.plot.heatmap(run="rps").get_title() == "rps"
    with pytest.raises(ValueError, match="run is 'udmp'; expected one of 'ecmp', 'rps'"):
        both.plot.heatmap(run="udmp")


def test_mistakes_are_told(result: pw.RunResult, small: pw.Scenario) -> None:
    with pytest.raises(ValueError, match=r"flows has no column 'fct'; it has .*fct_ns"):
        result.plot.cdf("fct")
    with pytest.raises(ValueError, match=r"column 'group' of flows holds no numbers; those that do: .*fct_ns"):
        result.plot.cdf("group")
    with pytest.raises(ValueError, match="flows has no column 'colour'"):
        result.plot.cdf(by="colour")
    with pytest.raises(ValueError, match=r"no samples of 'queues'; this run has .*queue_bytes"):
        result.plot.series("queues")
    with pytest.raises(ValueError, match="most is 0; expected 1 to 12"):
        result.plot.series(most=0)
    with pytest.raises(ValueError, match=r"there are no samples; set observe\.interval"):
        pw.run(small.with_(set=["observe.interval=0s"]), progress=False).plot.series()


def test_without_matplotlib_the_extra_is_named(result: pw.RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"plots need the extra pathweave\[plots\] \(matplotlib is missing\)"):
        result.plot.cdf()
