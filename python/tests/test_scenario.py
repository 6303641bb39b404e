"""Scenarios: reading, changing, and what is said of mistakes."""

from pathlib import Path

import pytest

import pathweave as pw
from conftest import ROOT, SMALL


def test_a_file_a_text_and_a_dict_are_the_same_scenario(small: pw.Scenario, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SMALL)
    fields = {
        "seed": 7,
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "workload": [{"kind": "permutation", "size": "64KB"}],
    }
    digests = {pw.run(s, progress=False).digest for s in (small, path, pw.Scenario.from_dict(fields), fields)}
    assert len(digests) == 1


def test_every_mistake_is_told_with_its_place() -> None:
    with pytest.raises(pw.ScenarioError) as caught:
        pw.Scenario.from_toml('[topology]\nkind = "leaf-spine"\nspinez = 2\n[[workload]]\nkind = "permutaton"\n')
    text, findings = str(caught.value), caught.value.findings
    assert "scenario.toml:3" in text and "spinez" in text and "permutaton" in text
    unknown = next(f for f in findings if "spinez" in f["message"])
    assert unknown["line"] == 3 and unknown["field"] == "topology.spinez"
    assert any("spines" in advice for advice in unknown["help"])


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(pw.ScenarioError, match=r"nowhere\.toml"):
        pw.Scenario.load("nowhere.toml")


def test_changes_add_up_and_leave_the_original(small: pw.Scenario) -> None:
    other = small.with_(set=["topology.spines=4"]).with_(seed=9, scheme="rps")
    assert (small.seed, other.seed) == (7, 9)
    assert small.check()["network"]["switches"] == 4
    assert other.check()["network"]["switches"] == 6
    with pytest.raises(pw.ScenarioError, match="spinse"):
        small.with_(set=["topology.spinse=4"])


def test_what_is_resolved_reads_back_as_the_same_run(small: pw.Scenario) -> None:
    again = pw.Scenario.from_toml(small.to_toml())
    assert pw.run(again, progress=False).digest == pw.run(small, progress=False).digest


def test_the_catalogue_names_what_scenarios_use() -> None:
    assert {"ecmp", "rps", "udmp"} <= {scheme["name"] for scheme in pw.schemes()}
    assert "leaf-spine" in {kind["name"] for kind in pw.topologies()}
    assert "permutation" in {kind["name"] for kind in pw.workloads()}
    assert pw.presets() and pw.schema()["properties"]["topology"]


def test_every_example_scenario_is_accepted() -> None:
    files = sorted((ROOT / "scenarios").glob("*.toml"))
    assert files
    for path in files:
        pw.Scenario.load(path)
