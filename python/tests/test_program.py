"""The program that the package carries."""

import json
import subprocess
import sys
from pathlib import Path

import pathweave as pw
from conftest import ROOT

QUICKSTART = str(ROOT / "scenarios" / "quickstart.toml")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_script_and_module_are_the_program(tmp_path: Path) -> None:
    script = str(Path(sys.executable).with_name("pathweave"))
    digests = []
    for command in ([script], [sys.executable, "-m", "pathweave"]):
        assert run([*command, "--version"], tmp_path).stdout == f"pathweave {pw.__version__}\n"
        done = run([*command, "run", QUICKSTART, "--json", "--out", "out"], tmp_path)
        assert done.returncode == 0, done.stderr
        digests.append(json.loads(done.stdout)["run"]["digest"])
        assert (tmp_path / "out" / "report.html").exists()
        wrong = run([*command, "run", "none.toml"], tmp_path)
        assert wrong.returncode == 2
        assert "none.toml" in wrong.stderr
        assert run([*command, "nonsense"], tmp_path).returncode == 2
    assert digests[0] == digests[1] == pw.run(QUICKSTART, progress=False).digest


def test_a_sweep_goes_to_a_cluster_only_where_one_is_named(tmp_path: Path) -> None:
    module = [sys.executable, "-m", "pathweave", "sweep"]
    own = run([*module, "--help"], tmp_path)
    assert "--prune" in own.stdout
    cluster = run([*module, "none.toml", "--scheduler", "tcp://127.0.0.1:1"], tmp_path)
    assert cluster.returncode == 2
    assert "none.toml" in cluster.stderr
