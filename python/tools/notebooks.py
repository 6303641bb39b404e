"""Executes the notebooks of docs/notebooks in Jupyter and keeps what they print and draw.

A notebook is written as a script with cells in the percent format, which editors and Jupytext know: `# %%` begins a
cell of Python, `# %% [markdown]` one of text. Each NAME.py becomes NAME.ipynb, executed. Both are committed, and the
site shows the second. A test executes them again and compares what they print.

Run: make notebooks
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
# The longest that a cell may take, in seconds.
TIMEOUT_S = 60


def read(script: Path) -> Any:
    """The cells of a script in the percent format, not yet executed.

    Raises:
        ValueError: Text before the first cell, or a line of a text cell that is no comment.
    """
    cells: list[Any] = []
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# %%"):
            markdown = line.removeprefix("# %%").strip() == "[markdown]"
            new: Any = nbformat.v4.new_markdown_cell if markdown else nbformat.v4.new_code_cell
            # The ids of nbformat are random; ours stay the same.
            cells.append(new("", id=f"cell-{len(cells)}"))
        elif not cells:
            raise ValueError(f"{script.name}:{number}: a line before the first `# %%`: {line!r}")
        elif cells[-1].cell_type == "code":
            cells[-1].source += line + "\n"
        elif line and not line.startswith("#"):
            raise ValueError(f"{script.name}:{number}: a line of text must begin with `# `: {line!r}")
        else:
            cells[-1].source += line.removeprefix("#").removeprefix(" ") + "\n"
    for cell in cells:
        cell.source = cell.source.strip("\n")
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return notebook


def execute(script: Path) -> Any:
    """The notebook of a script, executed in an empty folder.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell failed.
    """
    notebook = read(script)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": folder}})
        # Sockets in a folder of this user; other users of the machine could listen to TCP.
        kernel = client.create_kernel_manager()
        kernel.transport, kernel.ip = "ipc", str(Path(folder) / "kernel")
        client.execute()
    for cell in notebook.cells:
        # When a cell ran, which is different every time.
        cell.metadata.pop("execution", None)
    # Versions of the interpreter that ran it.
    notebook.metadata.pop("language_info", None)
    return notebook


def printed(notebook: Any) -> list[str]:
    """What the cells print and return as text, without pictures, which are called by their kind."""
    return [_text(output) for cell in notebook.cells for output in cell.get("outputs", [])]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output.text)
    return "image/png" if "image/png" in output.data else str(output.data["text/plain"])


def main() -> None:
    """Executes all notebooks, or those named."""
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.py"))
    for name in names:
        notebook = execute(FOLDER / f"{name}.py")
        nbformat.write(notebook, FOLDER / f"{name}.ipynb")
        print(f"docs/notebooks/{name}.ipynb")


if __name__ == "__main__":
    main()
