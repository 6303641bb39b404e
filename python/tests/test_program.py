"""The program in the package: the command `pathweave` and `python -m pathweave`."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import pathweave as pw
from conftest import ROOT, SMALL


def script() -> list[str]:
    """What an installer makes of the command that pyproject.toml declares; where tests run none is installed."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["pathweave"]
    module, function = declared.split(":")
    return [sys.executable, "-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


COMMANDS = [[sys.executable, "-m", "pathweave"], script()]


def call(command: list[str], *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", COMMANDS, ids=["module", "script"])
def test_it_runs_scenarios_and_says_how_it_ended(command: list[str], tmp_path: Path) -> None:
    version = call(command, "--version", folder=tmp_path)
    assert (version.returncode, version.stdout) == (0, f"pathweave {pw.__version__}\n")
    quickstart = ROOT / "scenarios" / "quickstart.toml"
    done = call(command, "run", quickstart, "--out", "here", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Slowdown" in done.stdout and "report: here/report.html" in done.stdout
    assert "quickstart: completed" in done.stderr
    told = json.loads((tmp_path / "here" / "summary.json").read_text())
    assert told["run"]["digest"] == pw.run(quickstart, progress=False).digest
    wrong = call(command, "run", "none.toml", folder=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: cannot read none.toml")
    unknown = call(command, "rum", folder=tmp_path)
    assert unknown.returncode == 2 and "'run'" in unknown.stderr


@pytest.mark.parametrize(("command", "folder"), [("ofi", "lib/libfabric"), ("nccl", "lib")])
def test_libraries_are_looked_for_in_the_package_first(command: str, folder: str, tmp_path: Path) -> None:
    place = Path(pw.__file__).parent / folder
    done = call(COMMANDS[0], command, "env", folder=tmp_path)
    if any(place.glob("*.so")):
        assert done.returncode == 0 and f"'{place}" in done.stdout
    else:
        assert f" in {place}, {Path(sys.executable).resolve().parent}" in done.stderr or done.returncode == 0


def test_ctrl_c_writes_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(SMALL.replace("64KB", "4GB"))
    command = [*COMMANDS[0], "run", "long.toml", "--out", "r"]
    # The parent may ignore Ctrl-C, as a shell makes its background jobs do; a user's terminal does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        # The folder under construction appears just before the run begins.
        start = time.monotonic()
        while not any(name.startswith(".r.") for name in os.listdir(tmp_path)):
            assert child.poll() is None and time.monotonic() - start < 60, "the run does not begin"
            time.sleep(0.01)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        _, told = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130, told
    assert "stopping: results so far will be written" in told and "Traceback" not in told
    run = json.loads((tmp_path / "r" / "summary.json").read_text())["run"]
    assert (run["partial"], run["ended"]) == (True, "interrupted")
    assert sorted(os.listdir(tmp_path)) == ["long.toml", "r"]


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMANDS[0], "show", "rps"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.wait(timeout=60) == 0 and child.stderr.read() == ""
