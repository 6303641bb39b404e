"""Synthesises the circuits of hardware/laps with Yosys for UltraScale+; writes what they take to docs/hardware.md.

Run: python hardware/report.py [UNIT...]

Nothing is placed or routed: there is no clock frequency in the table, but the levels of logic between registers
(`depth.py`).
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from depth import of_netlist
from sources import LAPS, needed

PAGE = Path(__file__).parents[1] / "docs" / "hardware.md"
BEGIN, END = "<!-- synthesis: begin -->", "<!-- synthesis: end -->"


@dataclass(frozen=True)
class Unit:
    """A row of the table."""

    name: str
    top: str
    # Parameters that are not as in the file.
    parameters: tuple[tuple[str, int], ...] = ()


UNITS = (
    Unit("chooser, 8 paths", "laps_chooser", (("PATH", 3),)),
    Unit("chooser, 64 paths", "laps_chooser", (("PATH", 6),)),
    Unit("chooser, 256 paths", "laps_chooser", (("PATH", 8),)),
    Unit("its weigher alone", "laps_weigher"),
    Unit("its generator alone", "laps_xoshiro"),
    Unit("path state, 8 paths", "laps_paths", (("PATH", 3),)),
    Unit("path state, 64 paths", "laps_paths", (("PATH", 6),)),
    Unit("rate unit, 1,024 flows", "laps_rate"),
    Unit("its divider alone", "laps_divider"),
    Unit("extremes, 8 paths", "laps_extremes"),
    Unit("loss rings, 16,384 packets on 8,192 paths", "laps_rings"),
    Unit("search table, 2 x 1,024 addresses", "laps_search"),
    Unit("parser", "laps_parser"),
    Unit("its ICRC alone", "laps_icrc"),
    Unit("answers, 1,024 flows", "laps_answers"),
    Unit("builder", "laps_builder"),
    Unit("deparser", "laps_deparser"),
    Unit("registers", "laps_registers"),
    Unit("all of it, 8 paths", "laps_top"),
)

# Table V of the paper.
PAPER = (
    ("paper: path search table", "74", "177", "0", "8"),
    ("paper: path information table", "2,950", "2,976", "0", "112"),
    ("paper: rate limiting", "3,012", "3,866", "119", "8"),
    ("paper: softmax", "26,949", "7,938", "1,752", "0"),
    ("paper: total", "33,808", "16,711", "1,909", "135.5"),
)


def sources(unit: Unit, folder: Path) -> list[Path]:
    """The modules, with parameters of the top as its defaults: given otherwise, Yosys 0.23 fails an assertion."""
    found = []
    for path in needed(unit.top):
        text = path.read_text(encoding="utf-8")
        if re.search(rf"^module {unit.top}\b", text, re.MULTILINE):
            for name, value in unit.parameters:
                text, changed = re.subn(rf"(parameter int unsigned {name} = )\d+", rf"\g<1>{value}", text, count=1)
                if not changed:
                    raise SystemExit(f"{path.name}: no parameter {name}")
        copy = folder / path.name
        copy.write_text(text, encoding="utf-8")
        found.append(copy)
    shutil.copy(LAPS / "exp2.hex", folder)
    return found


def cells(unit: Unit) -> tuple[dict[str, int], int]:
    """How many of each cell a unit takes, and the most levels of logic between its registers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = [f"read_verilog -sv {path.name}" for path in sources(unit, folder)]
        script += [
            f"hierarchy -check -top {unit.top}",
            "synth_xilinx -family xcup -flatten",
            "tee -o cells.txt stat",
            "write_json netlist.json",
        ]
        (folder / "script.ys").write_text("\n".join(script) + "\n", encoding="utf-8")
        done = subprocess.run(["yosys", "-q", "script.ys"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{unit.name}: Yosys failed:\n{done.stdout}{done.stderr}")
        text = (folder / "cells.txt").read_text(encoding="utf-8")
        levels, _ = of_netlist(folder / "netlist.json", unit.top)
    counted = re.findall(r"^ +([A-Z][A-Z0-9_]+) +(\d+)$", text, re.MULTILINE)
    return {cell: int(count) for cell, count in counted}, levels


def row(unit: Unit) -> tuple[str, ...]:
    """The unit's row: LUT with shift registers and memories of them, CARRY8 as half of CARRY4, BRAM of 36 Kbit."""
    found, levels = cells(unit)

    def total(pattern: str) -> int:
        return sum(count for cell, count in found.items() if re.fullmatch(pattern, cell))

    luts = total(r"LUT\d") + total(r"INV") + total(r"SRL\w+") + total(r"RAM\d+[A-Z]\d*\w*") - total(r"RAMB\w+")
    bram = total(r"RAMB36E2") + total(r"RAMB18E2") / 2
    values = (luts, total(r"FD\w+"), (total(r"CARRY4") + 1) // 2, bram, total(r"URAM288\w*"), total(r"DSP48E2"), levels)
    return (unit.name, *(f"{value:,}".removesuffix(".0") for value in values))


def table(rows: list[tuple[str, ...]]) -> str:
    """The rows beside those of the paper."""
    lines = ["| | LUT | FF | CARRY8 | BRAM | URAM | DSP | levels |", "|---|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    lines += ["| " + " | ".join(cells) + " | ? | ? | ? |" for cells in PAPER]
    return "\n".join(lines)


def main() -> None:
    """Synthesises what is asked for, or all of it, and then writes the table."""
    parser = argparse.ArgumentParser(description="LUTs, flip-flops and memories of the circuits, by Yosys")
    parser.add_argument("unit", nargs="*", help="a part of the names of the units wanted; then nothing is written")
    wanted = parser.parse_args().unit
    if not shutil.which("yosys"):
        print("SKIPPED: no Yosys (Debian: apt install yosys); the table of docs/hardware.md was not written")
        return
    units = [unit for unit in UNITS if not wanted or any(part in unit.name for part in wanted)]
    if not units:
        raise SystemExit(f"no unit named {', '.join(wanted)}; there are: {', '.join(unit.name for unit in UNITS)}")
    rows = []
    for unit in units:
        rows.append(row(unit))
        print("  ".join(rows[-1]), flush=True)
    if wanted:
        return
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
