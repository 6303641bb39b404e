"""The notebooks of the documents run in Jupyter, and print what the committed ones show."""

import sys
from pathlib import Path

import nbformat
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "python" / "tools"))
import notebooks

NAMES = sorted(path.stem for path in notebooks.FOLDER.glob("*.py"))


def test_each_script_has_its_executed_notebook() -> None:
    assert NAMES == ["compare-schemes", "first-run", "picker", "sweep"]
    assert sorted(path.stem for path in notebooks.FOLDER.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_what_is_committed(name: str) -> None:
    committed = nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)
    executed = notebooks.execute(notebooks.FOLDER / f"{name}.py")
    again = "make notebooks writes it anew"
    assert [cell.source for cell in committed.cells] == [cell.source for cell in executed.cells], again
    assert notebooks.printed(committed) == notebooks.printed(executed), again
    assert "image/png" in notebooks.printed(committed)


def test_a_mistake_in_a_script_is_told_with_its_line(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("# %% [markdown]\n# Text.\nno comment\n")
    with pytest.raises(ValueError, match=r"wrong\.py:3: a line of text must begin with `# `: 'no comment'"):
        notebooks.read(script)
    script.write_text("import os\n# %%\n")
    with pytest.raises(ValueError, match=r"wrong\.py:1: a line before the first `# %%`: 'import os'"):
        notebooks.read(script)
