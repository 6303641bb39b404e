#!/usr/bin/env python3
"""The blocks of docs/mpi.md marked "tested", run as they stand there: each MPI over the provider, byte by byte.

What an MPI needs is installed from the Python index into ``target/mpi``; what cannot be had is skipped with a word.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/mpi"
#: Seconds that a job may take; longer is a hang.
PATIENCE = 300


class Skipped(Exception):
    """Something is not to be had here."""


@dataclass
class Stack:
    """An MPI, or what is above one."""

    name: str
    #: The mark of its block in the document.
    block: str
    packages: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    #: Makes what the block calls ``./program``: from the environment's folder, that to run in, and the kind of run.
    program: Callable[[Path, Path, str], None] = lambda venv, folder, kind: script(venv, folder, kind)
    #: Programs that must be there, and are not packages.
    needs: list[str] = field(default_factory=list)
    most_ranks: int = 16


def script(venv: Path, folder: Path, kind: str) -> None:
    """``./program`` is the suite, under the Python of the environment."""
    path = folder / "program"
    path.write_text(f'#!/bin/sh\nexec "{venv}/bin/python" "{HERE}/suite.py" {kind}\n')
    path.chmod(0o755)


def tensors(venv: Path, folder: Path, kind: str) -> None:
    """``sum.py`` is the suite, which sums tensors where PyTorch is installed."""
    if subprocess.run([venv / "bin/python", "-c", "import torch"], capture_output=True, check=False).returncode:
        raise Skipped("PyTorch is not installed in its environment, and two gigabytes are not fetched for it")
    shutil.copy(HERE / "suite.py", folder / "sum.py")


def collectives(venv: Path, folder: Path, kind: str) -> None:
    """``./program`` is compiled against oneCCL's static library: the package lacks what its shared one needs."""
    lib = venv / "lib"
    words = ["c++", "-std=c++17", "-O1", "-I", venv / "include", "-o", folder / "collectives", HERE / "collectives.cpp"]
    words += [lib / "ccl/cpu/lib/libccl.a", f"-Wl,-rpath,{lib}", "-L", lib, "-l:libintlc.so.5", "-lirc", "-lsvml"]
    words += ["-limf", "-lhwloc", "-l:libmpi.so.12", "-lpthread", "-ldl"]
    try:
        built = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as why:
        raise Skipped("there is no C++ compiler") from why
    if built.returncode:
        raise Skipped("oneCCL cannot be linked here: " + built.stderr.strip().splitlines()[-1])
    path = folder / "program"
    path.write_text(f'#!/bin/sh\nexec "{folder}/collectives" "{folder}/store"\n')
    path.chmod(0o755)


ONE_HOST = {"PATHWEAVE_IFACE": "lo"}
#: What carries messages between the ranks, which are all on this host.
CARRIERS = {
    "network": {"PATHWEAVE_SHARED_MEMORY": "off"},
    # The interface that the provider chooses: that of a card, where there is one, about which MPIs ask more. Packets to
    # its own address stay on this host, but sockets listen on it, so that it has to be asked for.
    "interface": {"PATHWEAVE_SHARED_MEMORY": "off", "PATHWEAVE_IFACE": ""},
    "memory": {"PATHWEAVE_SHARED_MEMORY": "on"},
}
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
INTEL = {"I_MPI_PIN": "0", "I_MPI_THREAD_YIELD": "3", "I_MPI_HYDRA_BOOTSTRAP": "fork"}
SUITE = ["mpi4py", "numpy"]
STACKS = [
    Stack("open-mpi-5", "open-mpi", ["openmpi", *SUITE], OPEN_MPI),
    Stack("open-mpi-4", "open-mpi", SUITE, {**OPEN_MPI, "MPI4PY_MPIABI": "openmpi"}, needs=["mpirun.openmpi"]),
    Stack("mpich", "mpich", ["mpich", *SUITE], {"MPIR_CVAR_NOLOCAL": "1"}),
    Stack("intel-mpi", "intel-mpi", ["impi-rt", *SUITE], INTEL),
    Stack(
        "oneccl",
        "oneccl",
        ["impi-rt", "oneccl-cpu", "oneccl-cpu-devel", "intel-cmplr-lib-rt"],
        INTEL,
        program=collectives,
        most_ranks=4,
    ),
    Stack("pytorch", "pytorch", ["openmpi", *SUITE], OPEN_MPI, program=tensors, most_ranks=4),
]


def blocks() -> dict[str, str]:
    """The blocks of the document, by their marks."""
    text = (ROOT / "docs/mpi.md").read_text()
    return dict(re.findall(r"<!-- tested: ([a-z-]+) -->\n```\n(.*?)```\n", text, flags=re.DOTALL))


def environment(stack: Stack, folder: Path) -> Path:
    """A Python environment with the packages."""
    venv = folder / stack.name
    done = venv / "packages"
    if not done.exists() or done.read_text() != " ".join(stack.packages):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        words = [venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *stack.packages]
        installed = subprocess.run(words, capture_output=True, text=True, check=False)
        if installed.returncode:
            raise Skipped("packages cannot be had: " + installed.stderr.strip().splitlines()[-1])
        done.write_text(" ".join(stack.packages))
    return venv


def system_open_mpi(venv: Path) -> dict[str, str]:
    """``mpirun`` is the system's, and so is the library."""
    for name in ["mpirun", "mpiexec"]:
        link = venv / "bin" / name
        if not link.exists():
            link.symlink_to(shutil.which("mpirun.openmpi") or "mpirun.openmpi")
    found = sorted(Path("/usr/lib").glob("*/libmpi.so.40"))
    if not found:
        raise Skipped("the library of Open MPI 4 is not where Debian has it")
    return {"MPI4PY_LIBMPI": str(found[0])}


def run(command: str, ranks: int, folder: Path, variables: dict[str, str]) -> str:
    """What a block prints with so many ranks; an exception if it fails or hangs."""
    # Packages are there already; the rest stands as it is.
    lines = [line for line in command.splitlines() if not line.startswith("pip install")]
    text = re.sub(r"\bmpirun -n \d+", f"mpirun -n {ranks}", "\n".join(lines))
    with subprocess.Popen(
        ["bash", "-ec", text],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise RuntimeError(f"hangs: not done after {PATIENCE} s") from None
    right = f"exact among {ranks} ranks: "
    for line in output.splitlines():
        if process.returncode == 0 and line.startswith(right):
            return line.removeprefix(right)
    raise RuntimeError(f"exit code {process.returncode}\n{output}")


def test(stack: Stack, options: argparse.Namespace, key: Path) -> None:
    """All runs of a stack; an exception for the first that fails."""
    missing = [name for name in stack.needs if not shutil.which(name)]
    if missing:
        raise Skipped(f"there is no {missing[0]}")
    venv = environment(stack, options.folder)
    work = options.folder / f"{stack.name}-work"
    work.mkdir(exist_ok=True)
    variables = {
        **ONE_HOST,
        **stack.variables,
        "FI_PROVIDER_PATH": str(options.folder / "provider"),
        "PATHWEAVE_KEY_FILE": str(key),
        "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
        "I_MPI_ROOT": str(venv),
    }
    if stack.needs:
        variables.update(system_open_mpi(venv))
    stack.program(venv, work, "quick" if options.quick else "all")
    command = blocks()[stack.block]
    for carrier in options.over:
        for ranks in (count for count in options.ranks if count <= stack.most_ranks):
            begun = time.monotonic()
            for number in range(options.runs):
                (work / "store").unlink(missing_ok=True)
                try:
                    told = run(command, ranks, work, {**variables, **CARRIERS[carrier]})
                except RuntimeError as why:
                    raise RuntimeError(f"{ranks} ranks over the {carrier}, run {number + 1}: {why}") from why
            seconds = time.monotonic() - begun
            runs = f"{ranks} ranks over the {carrier}, {options.runs} runs in {seconds:.0f} s"
            print(f"{stack.name}, {runs}: exact; {told}", flush=True)


def main() -> int:
    """All stacks, or those that are named."""
    names = [stack.name for stack in STACKS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="the provider's library")
    parser.add_argument("--folder", type=Path, default=ROOT / "target/mpi", help="where packages and programs go")
    parser.add_argument("--only", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--ranks", default="2,4,16", help="numbers of ranks")
    parser.add_argument("--over", default="network", help=f"what carries messages, of {', '.join(CARRIERS)}")
    parser.add_argument("--runs", type=int, default=1, help="how often each is repeated")
    parser.add_argument("--quick", action="store_true", help="a third of the work")
    options = parser.parse_args()
    options.ranks = [int(count) for count in options.ranks.split(",")]
    options.over = options.over.split(",")
    for carrier in options.over:
        if carrier not in CARRIERS:
            parser.error(f"nothing named {carrier} carries messages; there are {', '.join(CARRIERS)}")
    chosen = options.only.split(",")
    unknown = [name for name in chosen if name not in names]
    if unknown:
        parser.error(f"nothing is named {unknown[0]}; there are {', '.join(names)}")
    absent = {stack.block for stack in STACKS} - blocks().keys()
    if absent:
        parser.error(f"docs/mpi.md has no block marked {sorted(absent)[0]}")
    options.folder = options.folder.resolve()
    provider = options.folder / "provider"
    provider.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.library, provider / "libpathweave-fi.so")
    key = options.folder / "cluster.key"
    key.unlink(missing_ok=True)
    with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32) + "\n")
    failed = []
    for stack in STACKS:
        if stack.name not in chosen:
            continue
        try:
            test(stack, options, key)
        except Skipped as why:
            print(f"skipped: {stack.name}: {why}", flush=True)
        except RuntimeError as why:
            failed.append(stack.name)
            print(f"FAILED: {stack.name}: {why}", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


sys.exit(main())
