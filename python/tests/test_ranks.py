"""What `make test-ranks` and `make lint` look for before they build for an MPI."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARROW = "(libc6,x86-64) => /lib/x86_64-linux-gnu"


def of_python(libraries: str) -> bool:
    spec = importlib.util.spec_from_file_location("ranks_run", ROOT / "tests/ranks/run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return bool(module.lists_libclang(libraries))


def of_make(libraries: str) -> bool:
    pattern = re.search(r"ldconfig -p .*grep -Eo -m1 '([^']+)'", (ROOT / "Makefile").read_text())
    assert pattern is not None, "HAS_MPI of the Makefile looks otherwise"
    command = ["grep", "-Eo", "-m1", pattern[1]]
    return subprocess.run(command, input=libraries, capture_output=True, text=True, check=False).returncode == 0


@pytest.mark.parametrize("finds", [of_python, of_make])
@pytest.mark.parametrize(
    ("library", "there"),
    [
        ("libclang-14.so.13", True),
        ("libclang-19.so.19", True),
        ("libclang.so.1", True),
        ("libclang.so", True),
        ("libclang-cpp.so.14", False),
        ("libclangd.so", False),
        ("libc.so.6", False),
    ],
)
def test_libclang_is_found_by_debians_name(finds: Callable[[str], bool], library: str, there: bool) -> None:
    listed = f"123 libs found in cache\n\tlibc.so.6 {ARROW}/libc.so.6\n\t{library} {ARROW}/{library}\n"
    assert finds(listed) is there
