"""What the documents show works as shown."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from conftest import ROOT


def test_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "python" / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "python/README.md", "exec"), {})
    assert "Slowdown" in capsys.readouterr().out
    assert (tmp_path / "results" / "quickstart" / "report.html").exists()


def test_the_page_for_researchers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "for-researchers.md").read_text(), re.DOTALL)
    exec(compile(block, "docs/for-researchers.md", "exec"), {})
    assert "mine" in capsys.readouterr().out


SMALL = '[topology]\nkind = "star"\nhosts = 4\n[[workload]]\nkind = "incast"\nsenders = 3\nsize = "64KB"\n'


def example(name: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a script as a reader does, with its pictures in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(ROOT / "python" / "examples" / name), run_name="__main__")


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 10_000


def test_every_example_is_tested() -> None:
    scripts = {path.name for path in (ROOT / "python" / "examples").glob("*.py")}
    assert scripts == {"choose_a_scheme.py", "read_a_trace.py", "reproduce_a_figure.py", "write_a_sweep.py"}


def test_choosing_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(SMALL)
    example("choose_a_scheme.py", ["mine.toml"], tmp_path, monkeypatch)
    told = capsys.readouterr().out
    assert "from 10000 B: " in told
    assert "udmp" in told
    assert is_picture(tmp_path / "choose.png")
    example("choose_a_scheme.py", [], tmp_path, monkeypatch)
    assert "my-cluster: 32 hosts, 8 switches" in capsys.readouterr().out


def test_reproducing_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example("reproduce_a_figure.py", ["--size", "32KB"], tmp_path, monkeypatch)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:5]]
    assert [(row[0], row[-1]) for row in rows] == [
        ("UDMP", "-"),
        ("MPRDMA", "2.0"),
        ("QP-Scaling-16", "1.7"),
        ("QP-Scaling-32", "1.3"),
    ]
    assert all(0 < float(row[2]) <= float(row[1]) < 92.8 for row in rows)
    assert is_picture(tmp_path / "udmp-6a.png")


def test_writing_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example("write_a_sweep.py", [], tmp_path, monkeypatch)
    first = capsys.readouterr().out
    assert "dataset digest: " in first
    assert is_picture(tmp_path / "spines.png")
    example("write_a_sweep.py", [], tmp_path, monkeypatch)
    assert capsys.readouterr().out == first, "what is finished gives the same again"


def test_reading_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example("read_a_trace.py", [], tmp_path, monkeypatch)
    told = capsys.readouterr().out.splitlines()
    alone, congested = (float(line.split("iteration ")[1].split(" us")[0]) for line in told[:2])
    # 14 steps of 128 KiB at 100 Gb/s take 147 us without headers, delays and computation.
    assert 147 < alone < congested
    assert is_picture(tmp_path / "trace.png")
