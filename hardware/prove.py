"""Proves properties of the circuits of hardware/laps by induction, with the solver that Yosys has of its own.

Run: python hardware/prove.py [MODULE...]

The properties stand in the modules, below `ifdef FORMAL`. Widths are small; nothing in them depends on width. Beside
each proof stand mutations: the circuit without one of its forwarding registers, say, of which the same proof must fail.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sources import LAPS, needed


@dataclass(frozen=True)
class Proof:
    """Properties of a module."""

    says: str
    top: str
    # What is replaced in the module's file: its parameters.
    sizes: tuple[tuple[str, str], ...]
    # Clocks of the induction at most.
    clocks: int = 3
    defines: tuple[str, ...] = ()
    # File and text, and what stands in its place in a circuit that is wrong.
    mutations: tuple[tuple[str, str, str], ...] = ()


SMALL = (("PATH = 3", "PATH = 2"), ("DESTINATION = 10", "DESTINATION = 1"))

PROOFS = (
    Proof(
        "each operation sees the sums that those before it have left: a level below the root",
        "laps_chooser_level",
        (*SMALL, ("LEVEL = 0", "LEVEL = 1")),
        mutations=(
            ("chooser_level.sv", "sum = last && last_address == address ? last_sum : stored", "sum = stored"),
            ("chooser_level.sv", "last && last_address == address ?", "last ?"),
            ("chooser_level.sv", "last <= write;", "last <= valid && update;"),
        ),
    ),
    Proof("likewise the root", "laps_chooser_level", SMALL),
    Proof(
        "likewise leaves, totals and all levels together",
        "laps_chooser",
        SMALL,
        mutations=(
            ("chooser.sv", "last_leaf_written && last_leaf == {destination8, path8} ? last_weight :", ""),
            ("chooser.sv", "last_total_written && last_destination == destination9 ? last_total :", ""),
            ("chooser.sv", "last_total <= new_total9;", "last_total <= total9;"),
        ),
    ),
    Proof(
        "nothing is lost or doubled: what enters leaves in order, after exactly the latency",
        "laps_chooser",
        SMALL,
        clocks=19,
        defines=("FORMAL_ORDER",),
        mutations=(
            ("chooser.sv", "valid9 <= valid8 && !reset;", "valid9 <= valid8 && update8 && !reset;"),
            ("chooser.sv", ".CLOCKS(7)) leaves1to7", ".CLOCKS(6)) leaves1to7"),
        ),
    ),
    Proof(
        "a queue never overflows; each word leaves in its turn, once, and stays until it is taken",
        "laps_fifo",
        (("WIDTH = 8", "WIDTH = 2"), ("DEPTH = 4", "DEPTH = 2")),
        mutations=(
            ("fifo.sv", "in_ready = free_count != '0", "in_ready = 1'b1"),
            ("fifo.sv", "written != next_taken", "written != taken"),
            ("fifo.sv", "(next_taken[DEPTH-1:0])", "(taken[DEPTH-1:0])"),
            ("fifo.sv", "take = out_valid && out_ready", "take = out_ready"),
        ),
    ),
    Proof(
        "AXI: the answer to a read or write stays until it is taken, and no other is begun before",
        "laps_registers",
        (("COUNTERS = 10", "COUNTERS = 1"),),
        mutations=(
            ("registers.sv", "if (rvalid && rready) rvalid", "if (rvalid) rvalid"),
            ("registers.sv", "reads = arvalid && !rvalid", "reads = arvalid"),
            ("registers.sv", "wvalid && !bvalid &&", "wvalid &&"),
        ),
    ),
)


def holds(proof: Proof, mutation: tuple[str, str, str] | None) -> bool:
    """Whether Yosys proves it. What is neither proved nor refuted does not hold."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in needed(proof.top):
            text = path.read_text(encoding="utf-8")
            if mutation and path.name == mutation[0]:
                if mutation[1] not in text:
                    raise SystemExit(f"{path.name}: nothing reads `{mutation[1]}` any more")
                text = text.replace(mutation[1], mutation[2])
            if f"module {proof.top} " in text:
                for old, new in proof.sizes:
                    text = text.replace(f"int unsigned {old}", f"int unsigned {new}", 1)
            (folder / path.name).write_text(text, encoding="utf-8")
        shutil.copy(LAPS / "exp2.hex", folder)
        defines = " ".join(f"-D{define}" for define in proof.defines)
        script = [f"read_verilog -formal -sv {defines} {path.name}" for path in sorted(folder.glob("*.sv"))]
        script += [
            f"hierarchy -check -top {proof.top}",
            f"prep -flatten -top {proof.top}",
            # What no property looks at goes.
            "delete -output o:*",
            "opt_clean -purge",
            "memory_map",
            "async2sync",
            "opt -full",
            "clean -purge",
            f"sat -tempinduct -prove-asserts -set-assumes -seq 1 -maxsteps {proof.clocks} -verify",
        ]
        (folder / "script.ys").write_text("\n".join(script) + "\n", encoding="utf-8")
        done = subprocess.run(["yosys", "script.ys"], cwd=folder, capture_output=True, text=True, check=False)
        told = done.stdout + done.stderr
        if "Induction step proven: SUCCESS!" in told:
            return True
        if "proof did fail" in told or "Reached maximum number of time steps" in told:
            return False
        raise SystemExit(f"{proof.says}: Yosys failed:\n{told[-2000:]}")


def main() -> None:
    """Tries all proofs, or those of the modules named; fails unless each holds and each mutation is noticed."""
    if not shutil.which("yosys"):
        print("SKIPPED: no Yosys (Debian: apt install yosys); nothing was proved")
        return
    wrong = []
    for proof in (proof for proof in PROOFS if len(sys.argv) == 1 or proof.top in sys.argv[1:]):
        proved = holds(proof, None)
        print(f"{'proved' if proved else 'NOT PROVED'}: {proof.says}", flush=True)
        wrong += [] if proved else [proof.says]
        for mutation in proof.mutations:
            noticed = not holds(proof, mutation)
            print(f"  {'noticed' if noticed else 'NOT NOTICED'}: `{mutation[1]}` as `{mutation[2]}`", flush=True)
            wrong += [] if noticed else [mutation[1]]
    if wrong:
        raise SystemExit(f"{len(wrong)} wrong")


if __name__ == "__main__":
    sys.exit(main())
