"""Typed scenarios: what they serialise to, what they are read from, and what is said of mistakes."""

import dataclasses
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import pytest

import pathweave as pw
from conftest import ROOT
from pathweave import model
from pathweave._table import Table

SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))


def test_the_generated_module_is_that_of_the_schema() -> None:
    command: list[str | Path] = [sys.executable, ROOT / "python" / "tools" / "generate_model.py", "--check"]
    done = subprocess.run(command, check=False)
    assert done.returncode == 0, "python/pathweave/model.py is out of date: make python-model"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_file_is_typed_and_comes_back_as_it_was(path: Path) -> None:
    scenario = model.ScenarioFile.load(path)
    assert scenario.to_dict() == tomllib.loads(path.read_text())
    assert untyped(scenario) == []
    # With every default filled in, too.
    checked = pw.Scenario.load(path)
    resolved = model.ScenarioFile.resolved(checked)
    assert resolved.to_dict() == tomllib.loads(checked.to_toml())
    assert untyped(resolved) == []


def untyped(value: object) -> list[object]:
    """Tables that no class was found for."""
    match value:
        case Table():
            return [found for field in dataclasses.fields(value) for found in untyped(getattr(value, field.name))]
        case list():
            return [found for one in value for found in untyped(one)]
        case dict():
            return [one for one in value.values() if isinstance(one, dict)]
    return []


def test_typed_and_written_scenarios_are_the_same_run(small: pw.Scenario) -> None:
    typed = model.ScenarioFile(
        seed=7,
        topology=model.LeafSpineTopology(leaves=2, spines=2, hosts_per_leaf=2),
        workload=[model.PermutationWorkload(size="64KB")],
    )
    assert pw.run(typed, progress=False).digest == pw.run(small, progress=False).digest
    assert pw.compare(typed, ["ecmp", "rps"], progress=False).schemes == ["ecmp", "rps"]


def test_a_table_has_what_was_said_and_nothing_else() -> None:
    scenario = model.ScenarioFile(
        topology=model.PresetTopology(preset="udmp-320", pods=2),
        scheme=model.Scheme(
            base="rps",
            policy=model.SplitPolicy(cc=model.DcqcnCc(preset="paper"), picker=model.PlbPicker(plb=model.Plb())),
        ),
        workload=[model.IncastWorkload(senders=3, size="64KB", class_=1, scheme="ecmp")],
        fault=[model.LinkDownFault(link="tor0-agg1", at="1us")],
        pools={"some": 4},
    )
    assert scenario.to_dict() == {
        "topology": {"preset": "udmp-320", "pods": 2},
        "scheme": {
            "base": "rps",
            "policy": {"kind": "split", "cc": {"kind": "dcqcn", "preset": "paper"}, "picker": {"plb": {}}},
        },
        "workload": [{"kind": "incast", "senders": 3, "size": "64KB", "class": 1, "scheme": "ecmp"}],
        "fault": [{"kind": "link-down", "link": "tor0-agg1", "at": "1us"}],
        "pools": {"some": 4},
    }
    assert repr(scenario.topology) == "PresetTopology(preset='udmp-320', pods=2)"


def test_mistakes_are_those_of_files_with_their_field() -> None:
    def mistake(topology: model.Topology) -> list[dict[str, object]]:
        scenario = model.ScenarioFile(topology=topology, workload=[model.PermutationWorkload(size="64KB")])
        with pytest.raises(pw.ScenarioError) as caught:
            scenario.checked()
        return caught.value.findings

    (found,) = mistake(model.StarTopology(hosts=4, delay="1"))
    assert found["field"] == "topology.delay"
    with pytest.raises(pw.ScenarioError) as of_file:
        pw.Scenario.from_toml(
            '[topology]\nkind = "star"\nhosts = 4\ndelay = "1"\n[[workload]]\nkind = "permutation"\nsize = "64KB"\n'
        )
    assert found["message"] == of_file.value.findings[0]["message"]
    assert found["allowed"] == of_file.value.findings[0]["allowed"]
    # Who is not told by the editor hears of it when it is made.
    with pytest.raises(TypeError, match="hostz"):
        model.StarTopology(hostz=4)  # type: ignore[call-arg]


def test_files_that_a_scenario_names_are_found_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("src,dst,size_bytes,start_ns\n0,1,1000,0\n")
    (tmp_path / "scenario.toml").write_text(
        '[topology]\nkind = "star"\nhosts = 2\n[[workload]]\nkind = "flows"\nfile = "flows.csv"\n'
    )
    scenario = model.ScenarioFile.load(tmp_path / "scenario.toml")
    assert len(pw.run(scenario, progress=False).flows) == 1
    swept = {"scenario": scenario, "grid": [{"key": "scheme", "values": ["ecmp", "rps"]}]}
    assert pw.sweep(swept, out=tmp_path / "out", progress=False).summary["finished_runs"] == 2


def test_an_editor_can_complete_every_name() -> None:
    listed = {name for scheme in pw.schemes() for name in (scheme["name"], *scheme.get("aliases", []))}
    assert listed == set(typing.get_args(model.SchemeName))
    for topology in pw.topologies():
        assert hasattr(model, "".join(part.capitalize() for part in topology["name"].split("-")) + "Topology")
