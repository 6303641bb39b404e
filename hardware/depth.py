"""Logic depth of a circuit that Yosys has mapped to UltraScale+: the most levels between two registers.

Run: python hardware/depth.py [NETLIST MODULE]

Without a netlist (a file that `write_json` has made) it holds itself to netlists counted by hand.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TypedDict

# Cells that what enters leaves in the same clock, and the levels they add. A carry chain is one level however long: one
# enters it at DI, S or CYINIT, and CI goes on in it. The multiplexers of a slice belong to the LUTs before them; a
# buffer of a pin or an inverter is no logic on a chip.
LEVELS = {r"LUT\d": 1, r"CARRY\d": 1, r"DSP48E2": 1, r"MUXF\d": 0, r"INV|IBUF|OBUF|BUFG": 0}
# Memories in LUTs are read in the clock of the address, and written at its end.
LUT_MEMORY = r"RAM\d+\w+"
READ_ADDRESS = re.compile(r"ADDR\w+|DPRA\d*|A\d*")


class Cell(TypedDict):
    """A cell of a netlist, as Yosys writes it."""

    type: str
    port_directions: dict[str, str]
    # Of each pin the bits of its wires: numbers, or constants as text.
    connections: dict[str, list[int | str]]


def levels(cell: Cell, pin: str) -> int | None:
    """Levels from an input pin to the cell's outputs; none where the clock is between: registers and memories."""
    kind = cell["type"]
    if re.fullmatch(r"CARRY\d", kind) and pin == "CI":
        return 0
    if re.fullmatch(LUT_MEMORY, kind) and not kind.startswith("RAMB"):
        return 1 if READ_ADDRESS.fullmatch(pin) else None
    return next((count for pattern, count in LEVELS.items() if re.fullmatch(pattern, kind)), None)


def depth(cells: dict[str, Cell]) -> tuple[int, list[str]]:
    """The most levels from a register, a memory or an input to one or to an output; the cells of such a path."""
    drivers: dict[int | str, str] = {}
    for name, cell in cells.items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] == "output":
                drivers.update(dict.fromkeys(bits, name))
    # Of each cell: levels up to its outputs, and the cell before it on the longest way.
    found: dict[str, tuple[int, str | None]] = {}
    begun: set[str] = set()

    def inputs(name: str) -> list[tuple[int, str]]:
        """Cells before it in the same clock, with the levels from their outputs to this one's."""
        cell = cells[name]
        pins = [(pin, bits) for pin, bits in cell["connections"].items() if cell["port_directions"][pin] == "input"]
        counted = [(levels(cell, pin), bits) for pin, bits in pins]
        return [(count, drivers[bit]) for count, bits in counted if count is not None for bit in bits if bit in drivers]

    def starts(name: str) -> bool:
        return all(levels(cells[name], pin) is None for pin in cells[name]["connections"])

    def visit(first: str) -> None:
        ahead = [first]
        while ahead:
            name = ahead[-1]
            if name in found:
                ahead.pop()
                continue
            before = [] if starts(name) else inputs(name)
            unknown = [other for _, other in before if other not in found]
            if unknown and name in begun:
                raise SystemExit(f"a loop without a register at {name}")
            begun.add(name)
            if unknown:
                ahead.extend(unknown)
                continue
            own = max((levels(cells[name], pin) or 0 for pin in cells[name]["connections"]), default=0)
            found[name] = max(((count + found[other][0], other) for count, other in before), default=(own, None))
            ahead.pop()

    for name in cells:
        visit(name)
    if not found:
        return 0, []
    last: str | None = max(found, key=lambda name: found[name][0])
    total, path = found[last][0] if last else 0, []
    while last is not None:
        path.append(last)
        last = found[last][1]
    return total, path[::-1]


def of_netlist(path: Path, top: str) -> tuple[int, list[str]]:
    """Depth of a module in a file that `write_json` has made."""
    return depth(json.loads(path.read_text(encoding="utf-8"))["modules"][top]["cells"])


def check() -> None:
    """Netlists whose depth is counted by hand."""

    def cell(kind: str, out: int, **pins: int) -> Cell:
        outputs = {"LUT2": "O", "LUT6": "O", "FDRE": "Q", "CARRY4": "CO", "MUXF7": "O", "SRL16E": "Q", "RAM64M": "DOA"}
        output = outputs[kind]
        directions = dict.fromkeys(pins, "input") | {output: "output"}
        connections: dict[str, list[int | str]] = {pin: [bit] for pin, bit in {**pins, output: out}.items()}
        return {"type": kind, "port_directions": directions, "connections": connections}

    register, after = cell("FDRE", 1, D=9), cell("FDRE", 9, D=5)
    assert depth({"a": register})[0] == 0
    # Register, two LUTs, a multiplexer between them, register; the shorter way round does not count.
    chain = {"l": cell("LUT2", 2, I0=1, I1=9), "m": cell("MUXF7", 3, I0=2, I1=1, S=1), "n": cell("LUT6", 5, I0=3, I1=1)}
    count, path = depth({"a": register, "b": after, **chain})
    assert (count, path[1:]) == (2, ["l", "m", "n"])
    # A carry chain of three is one level, and a LUT in front of it another.
    carries = {f"c{i}": cell("CARRY4", 11 + i, CI=10 + i, S=2) for i in range(3)}
    assert depth({"a": register, "l": cell("LUT2", 2, I0=1), **carries, "b": cell("FDRE", 9, D=13)})[0] == 2
    # What a shift register holds ends a path; the address of a memory in LUTs does not, but its data does.
    assert depth({"l": cell("LUT2", 2, I0=1), "s": cell("SRL16E", 3, D=2, A0=2), "m": cell("LUT2", 4, I0=3)})[0] == 1
    memory = {"l": cell("LUT2", 2, I0=1), "r": cell("RAM64M", 3, DIA=2, ADDRA=7), "m": cell("LUT2", 4, I0=3)}
    assert depth(memory)[0] == 2
    assert depth(memory | {"r": cell("RAM64M", 3, DIA=7, ADDRA=2)})[0] == 3


if __name__ == "__main__":
    check()
    if len(sys.argv) == 3:
        count, cells_of = of_netlist(Path(sys.argv[1]), sys.argv[2])
        print(count, *cells_of, sep="\n  ")
