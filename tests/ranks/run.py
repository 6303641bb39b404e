#!/usr/bin/env python3
"""One run by several processes, under each MPI there is: the results of one process, and clear words where it fails.

The program is built for each MPI in turn and kept in ``target/ranks``. An MPI that is not installed is skipped with
a word.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
#: Seconds that a run may take; longer is a hang.
PATIENCE = 120
SCENARIOS = [HERE / "crowd.toml", ROOT / "scenarios/faults.toml", ROOT / "scenarios/clusters/superpod.toml"]


def lists_libclang(libraries: str) -> bool:
    """Whether libclang is among libraries as ``ldconfig -p`` lists them.

    Debian's is named libclang-14.so.13, which ``ctypes.util.find_library`` does not find. libclang-cpp is another one.
    """
    return re.search(r"\blibclang(-\d+)?\.so\b", libraries) is not None


def has_libclang() -> bool:
    """Whether libclang is installed, which reads MPI's headers for the bindings."""
    # A user's PATH may lack the folders of ldconfig.
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/sbin", "/usr/sbin"])
    ldconfig = shutil.which("ldconfig", path=path)
    if ldconfig is None:
        return False
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False)
    return lists_libclang(listed.stdout)


@dataclass
class Mpi:
    """An MPI as Debian installs it beside others."""

    name: str
    compiler: str
    launcher: str
    #: More ranks than cores, and by whoever runs the tests.
    options: list[str]

    def missing(self) -> str | None:
        """What is not installed: MPI's own programs, and what reads its headers for the bindings."""
        missing = next((program for program in [self.compiler, self.launcher] if shutil.which(program) is None), None)
        return missing or (None if has_libclang() else "libclang")

    def ranks(self, count: int) -> list[str]:
        """The command that starts so many ranks."""
        return [self.launcher, *self.options, "-n", str(count)]


MPIS = [
    Mpi("openmpi", "mpicc.openmpi", "mpirun.openmpi", ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]),
    Mpi("mpich", "mpicc.mpich", "mpirun.mpich", []),
]


class Failed(Exception):
    """Something is not as it must be."""


def build(target: Path, options: list[str], mpi: Mpi | None) -> Path:
    """The program, linked with this MPI, or without any.

    With the options with which the Makefile builds programs, little is built anew.
    """
    # Examples have the features of what tests need.
    command = ["cargo", "build", "--quiet", *options, "--bins", "--examples"]
    environment, name = dict(os.environ), "none"
    if mpi is not None:
        command, name = [*command, "--features", "pathweave-cli/mpi"], mpi.name
        environment["MPICC"] = shutil.which(mpi.compiler) or mpi.compiler
        # The bindings do not notice that they are to be of another MPI.
        subprocess.run(["cargo", "clean", "--quiet", "-p", "mpi-sys"], cwd=ROOT, check=True, env=environment)
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    program = target / "ranks" / name / "pathweave"
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / "debug" / "pathweave", program)
    return program


def play(words: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE, check=False)


def expect(condition: bool, what: str, result: subprocess.CompletedProcess[str]) -> None:
    """Ends with what the program said where a condition does not hold."""
    if not condition:
        said = f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
        raise Failed(f"{what}; the command was {result.args}, {said}")


def same_results(mpi: Mpi, program: Path, scratch: Path) -> None:
    """Whatever ranks and threads: one digest, and tables that are equal byte by byte."""
    for scenario in SCENARIOS:
        alone = scratch / "alone"
        result = play([program, "run", scenario, "--json", "--threads", "1", "--out", alone])
        expect(result.returncode == 0, "a run by one process fails", result)
        digest = json.loads(result.stdout)["run"]["digest"]
        for ranks, threads in [(2, 1), (2, 2), (4, 1)]:
            folder = scratch / f"{ranks}-{threads}"
            words = [*mpi.ranks(ranks), program, "run", scenario, "--json", "--threads", threads, "--out", folder]
            result = play(words)
            expect(result.returncode == 0, f"a run by {ranks} ranks fails", result)
            found = json.loads(result.stdout)["run"]["digest"]
            expect(found == digest, f"{ranks} ranks have digest {found}, one process has {digest}", result)
            for table in sorted(path.name for path in alone.glob("*.parquet")):
                same = (alone / table).read_bytes() == (folder / table).read_bytes()
                expect(same, f"{table} of {ranks} ranks differs from that of one process", result)
            print(f"  {scenario.name}: {ranks} ranks of {threads} threads, {digest}")


def bad_starts(mpi: Mpi, program: Path, plain: Path, scratch: Path) -> None:
    """What cannot be run says why, once, and leaves nothing."""
    out = scratch / "bad"
    quickstart = ROOT / "scenarios/quickstart.toml"
    other = scratch / "other.toml"
    other.write_text(quickstart.read_text().replace('"1MB"', '"2MB"'))
    together = mpi.ranks(1)
    cases: list[tuple[list[str | Path], str]] = [
        ([*mpi.ranks(4), program, "run", quickstart, "--out", out], "4 ranks cannot share a network of 3"),
        ([*mpi.ranks(2), program, "run", scratch / "none.toml", "--out", out], "none.toml"),
        ([*mpi.ranks(2), program, "run", quickstart, "--threads", "0", "--out", out], "--threads"),
        ([*mpi.ranks(2), program, "run", quickstart, "--set", "run.fidelity=flow", "--out", out], "run.fidelity"),
        ([*mpi.ranks(2), program, "compare", quickstart, "--schemes", "rps,ecmp", "--out", out], "pathweave run"),
        (
            [*together, program, "run", quickstart, "--out", out, ":", "-n", "1", program, "run", other, "--out", out],
            "different runs",
        ),
        (
            [
                *together,
                program,
                "run",
                quickstart,
                "--out",
                out,
                ":",
                "-n",
                "1",
                program,
                "run",
                scratch / "none.toml",
            ],
            "rank 1",
        ),
    ]
    cases.append(([*mpi.ranks(2), plain, "run", quickstart, "--out", out], "has no MPI"))
    for words, said in cases:
        result = play(words)
        expect(result.returncode not in (0, 1), "it should have been refused", result)
        expect(said in result.stderr, f'the message should have "{said}"', result)
        left = [out, *out.parent.glob(f".{out.name}.partial-*")]
        expect(not any(path.exists() for path in left), "a result folder is there", result)
    print(f"  {len(cases)} bad starts refused")


def a_death(mpi: Mpi, program: Path, scratch: Path) -> None:
    """A rank that dies ends the run; the message leads to it, and nothing half-written is left."""
    out = scratch / "dead"
    words = [*mpi.ranks(3), program, "run", ROOT / "scenarios/incast.toml", "--set", "workload[0].size=500MB"]
    words += ["--force", "--out", out]
    run = subprocess.Popen(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert run.stderr is not None
    table: dict[int, int] = {}
    said = ""
    deadline = time.monotonic() + PATIENCE
    try:
        while len(table) < 3 and time.monotonic() < deadline:
            line = run.stderr.readline()
            if not line:
                break
            said += line
            if found := re.search(r"rank (\d+): process (\d+)", line):
                table[int(found[1])] = int(found[2])
        if len(table) < 3:
            raise Failed(f"the ranks and their processes are not told: {said}")
        os.kill(table[1], signal.SIGKILL)
        # Launchers tell of it on either stream.
        said += "".join(run.communicate(timeout=PATIENCE))
    finally:
        if run.poll() is None:
            run.kill()
            run.communicate()
    if run.returncode == 0:
        raise Failed(f"a run whose rank 1 was killed ended well: {said}")
    if out.exists():
        raise Failed(f"a run whose rank 1 was killed left {out}")
    # MPICH's launcher names the process of the first end that it sees, which may be that of another rank.
    named = re.search(r"process rank 1\b", said) or re.search(rf"PID ({'|'.join(map(str, table.values()))})\b", said)
    if not named:
        raise Failed(f"nothing leads to rank 1, process {table[1]}: {said}")
    print(f'  a death: "{named[0]}", exit code {run.returncode}')


def main() -> int:
    """Runs all, and says how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "target", help="where cargo builds")
    parser.add_argument("options", nargs="*", default=["--workspace"], help="options of cargo build, behind --")
    arguments = parser.parse_args()
    scratch = arguments.target / "ranks" / "results"
    plain: Path | None = None
    failed = 0
    for mpi in MPIS:
        if (missing := mpi.missing()) is not None:
            print(f"{mpi.name}: skipped, {missing} is not installed")
            continue
        print(f"{mpi.name}:", flush=True)
        plain = plain or build(arguments.target, arguments.options, None)
        program = build(arguments.target, arguments.options, mpi)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            same_results(mpi, program, scratch)
            bad_starts(mpi, program, plain, scratch)
            a_death(mpi, program, scratch)
        except (Failed, subprocess.TimeoutExpired) as why:
            print(f"{mpi.name}: FAILED: {why}")
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
