#!/usr/bin/env python3
"""Installs torch for the CPU into a folder: `tests/torch/install.py FOLDER`.

The package of the ordinary index needs gigabytes of CUDA libraries. They are not
fetched: libraries with the names that torch links, without content, take their
place, except for CUDA's runtime, which works without a GPU. With a folder that
has torch already, nothing is done. `TORCH_INDEX` names an index with builds for
the CPU, which need none of this.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

TORCH = "torch>=2.14"
NEEDED = ["filelock", "typing-extensions>=4.13", "sympy>=1.13.3", "networkx", "jinja2", "fsspec", "numpy", "pytest"]
RUNTIME = "nvidia-cuda-runtime"
# Parts of torch that link CUDA.
PARTS = ["libtorch_cuda.so", "libtorch_cpu.so", "libtorch_python.so", "libc10_cuda.so", "libtorch_nvshmem.so"]
FOREIGN = re.compile(r"^(cupti|cufft|cuFile|cusparse|nccl|pnccl|cublas|cudnn|nvrtc|nvshmem)")


def pip(*words: str) -> None:
    """Runs pip."""
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words], check=True)


def output(*words: str) -> list[str]:
    """Runs a program and returns its lines."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def symbols(part: Path) -> list[tuple[str, str]]:
    """Returns the symbols that a library needs, with their versions."""
    found = (line.split()[-1].partition("@") for line in output("nm", "-D", "--undefined-only", str(part)))
    return [(name, version.lstrip("@")) for name, _, version in found]


def versions(part: Path) -> dict[str, set[str]]:
    """Returns the versions of symbols that a library needs of others."""
    needed: dict[str, set[str]] = defaultdict(set)
    library = ""
    for line in output("readelf", "-VW", str(part)):
        if file := re.search(r"File: (\S+)", line):
            library = file[1]
        elif (name := re.search(r"Name: (\S+)", line)) and library:
            needed[library].add(name[1])
    return needed


def empty_library(path: Path, names_of: dict[str, set[str]], folder: Path) -> None:
    """Compiles a library whose functions all fail."""
    names = sorted({name for names in names_of.values() for name in names})
    source, script = folder / "empty.c", folder / "empty.map"
    source.write_text("".join(f"int {name}(void) {{ return 999; }}\n" for name in names) or "int nothing;\n")
    script.write_text(
        "".join(
            f"{version} {{ global: {' '.join(f'{name};' for name in sorted(names))} }};\n"
            for version, names in names_of.items()
            if version
        )
    )
    versioned = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}", *versioned]
    subprocess.run([*command, "-o", path, source], check=True)


def without_cuda(folder: Path) -> None:
    """Puts empty libraries beside torch's, for those that are missing."""
    libraries = folder / "torch/lib"
    parts = [libraries / part for part in PARTS if (libraries / part).exists()]
    for runtime in folder.glob("nvidia/*/lib/libcudart.so.*"):
        shutil.copy(runtime, libraries)
    linked = {
        found[1]
        for part in parts
        for line in output("readelf", "-dW", str(part))
        if (found := re.search(r"NEEDED.*\[(lib(?:cu|nccl|nvrtc|nvshmem)\S+)\]", line))
    }
    needed: dict[str, set[str]] = defaultdict(set)
    by_version: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        for library, names in versions(part).items():
            needed[library] |= names
        for name, version in symbols(part):
            by_version[version].add(name)
    unversioned = {name for name in by_version[""] if FOREIGN.match(name)}
    with tempfile.TemporaryDirectory() as scratch:
        for library in sorted(linked):
            if not (libraries / library).exists():
                found = {version: by_version[version] for version in sorted(needed[library])} or {"": unversioned}
                empty_library(libraries / library, found, Path(scratch))


def main() -> None:
    """Installs what is missing."""
    folder = Path(sys.argv[1])
    if (folder / "torch/version.py").exists():
        return
    index = os.environ.get("TORCH_INDEX")
    into = ["install", "--target", str(folder)]
    if index:
        pip(*into, "--index-url", index, TORCH)
    else:
        pip(*into, "--no-deps", TORCH)
        pip(*into, "--no-deps", RUNTIME)
        without_cuda(folder)
    pip(*into, *NEEDED)


main()
