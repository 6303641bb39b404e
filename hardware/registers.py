"""Writes the registers and commands of hardware/*.csv as tables to docs/hardware.md.

A test holds the circuit to the same files.

Run: python hardware/registers.py [--check]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "hardware.md"


def table(name: str) -> str:
    """The rows of a file, its first row as heads."""
    with (HERE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    for row in rows:
        if len(row) != len(head):
            raise SystemExit(f"{name}.csv: {len(row)} columns in {row}, {len(head)} in the first row")
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines])


def written(page: str) -> str:
    """The page with both tables as they are now."""
    for name in ("registers", "commands"):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{table(name)}\n{end}{rest.split(end)[1]}"
    return page


def main() -> None:
    """Writes the page, or only says whether it is as it would be written."""
    page = PAGE.read_text(encoding="utf-8")
    if written(page) == page:
        return
    if "--check" in sys.argv:
        raise SystemExit("docs/hardware.md is not as hardware/*.csv has it; run: python hardware/registers.py")
    PAGE.write_text(written(page), encoding="utf-8")


if __name__ == "__main__":
    main()
