"""What the documents show works as shown."""

import re
import runpy
import sys

from conftest import ROOT


def test_the_readme(tmp_path, monkeypatch, capsys):
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "python" / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "python/README.md", "exec"), {})
    assert "Slowdown" in capsys.readouterr().out
    assert (tmp_path / "results" / "quickstart" / "report.html").exists()


def test_choosing_a_scheme(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine.toml"
    path.write_text('[topology]\nkind = "star"\nhosts = 4\n[[workload]]\nkind = "incast"\nsenders = 3\nsize = "64KB"\n')
    monkeypatch.setattr(sys, "argv", ["choose_a_scheme.py", str(path)])
    runpy.run_path(str(ROOT / "python" / "examples" / "choose_a_scheme.py"), run_name="__main__")
    told = capsys.readouterr().out
    assert "64000 B: " in told and "udmp" in told
