"""What `.ci/wheel` finds in wheels, and what the build backend tells."""

import base64
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import platform
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / ".ci"))
sys.path.insert(0, str(ROOT / "python" / "tools"))
import elf
import pathweave_build

TAG = "cp311-abi3-manylinux_2_28_x86_64"
VERSION = subprocess.run(
    [ROOT / ".ci" / "release", "check"], capture_output=True, text=True, check=True
).stdout.split()[-1]


def script(name: str) -> ModuleType:
    """A script of .ci as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / ".ci" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


wheel = script("wheel")


def library(exported: str, glibc: str = "2.17", needed: str = "libc.so.6", machine: int = 62, more: str = "") -> bytes:
    """The parts of a shared library that a check reads: five sections behind a header of 64 bytes."""
    strings = b"\0" + b"\0".join(text.encode() for text in (exported, needed, f"GLIBC_{glibc}", "/own")) + b"\0"
    at = {text: strings.index(text.encode()) for text in (exported, needed, f"GLIBC_{glibc}", "/own")}
    symbols = bytes(24) + struct.pack("<IBBHQQ", at[exported], 0x12, 0, 1, 0, 0)
    versions = struct.pack("<HHIII", 1, 1, at[needed], 16, 0) + struct.pack("<IHHII", 0, 0, 2, at[f"GLIBC_{glibc}"], 0)
    dynamic = struct.pack("<QQ", elf.NEEDED, at[needed])
    dynamic += struct.pack("<QQ", elf.RUNPATH, at["/own"]) if more == "runpath" else b""
    names = ["", ".dynstr", ".dynsym", ".gnu.version_r", ".debug_info" if more == "debug" else ".dynamic", ".shstrtab"]
    table = b"\0".join(name.encode() for name in names) + b"\0"
    data, headers, offset = b"", bytes(64), 64
    kinds = [(3, 0, 0), (elf.DYNSYM, 1, 0), (elf.VERNEED, 1, 1), (elf.DYNAMIC, 1, 0), (3, 0, 0)]
    for name, (kind, link, info), part in zip(
        names[1:], kinds, [strings, symbols, versions, dynamic, table], strict=True
    ):
        place = table.index(name.encode())
        headers += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, offset + len(data), len(part), link, info, 1, 0)
        data += part
    start = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, machine, 1, 0, 0, 64 + len(data))
    return start + struct.pack("<IHHHHHH", 0, 64, 0, 0, 64, 6, 5) + data + headers


def make(folder: Path, tag: str = TAG, change: dict[str, bytes | None] | None = None) -> Path:
    """A wheel that passes, but for what is changed; a file of None is left out."""
    about = f"pathweave-{VERSION}.dist-info"
    project = ROOT / "python" / "pathweave"
    sources = [path for path in project.rglob("*.py*") if "__pycache__" not in path.parts]
    files: dict[str, bytes | None] = {f"pathweave/{path.relative_to(project)}": path.read_bytes() for path in sources}
    files |= {f"pathweave/{name}": b"" for name in ("py.typed",)}
    files |= {path: library(symbol) for path, symbol in wheel.LIBRARIES.items()}
    summary = "Transport for AI-cluster fabrics: simulate schemes, compare them, read the results as frames"
    files[f"{about}/METADATA"] = (
        f"Metadata-Version: 2.4\nName: pathweave\nVersion: {VERSION}\nSummary: {summary}\n"
        "Requires-Python: >=3.11\nLicense: Apache-2.0\n\n# pathweave for Python\n"
    ).encode()
    files[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nTag: {tag}\n".encode()
    files[f"{about}/entry_points.txt"] = b"[console_scripts]\npathweave=pathweave.__main__:main\n"
    files[f"{about}/licenses/LICENSE"] = b"Apache"
    files |= change or {}
    path = folder / f"pathweave-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        record = f"{about}/RECORD,,\n"
        for name, content in files.items():
            if content is not None:
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record += f"{name},sha256={digest},{len(content)}\n"
                archive.writestr(name, content)
        archive.writestr(f"{about}/RECORD", record)
    return path


def test_what_is_read_of_the_interpreter_is_true() -> None:
    read = elf.read(Path(sys.executable).resolve().read_bytes())
    assert read.machine == platform.machine()
    assert "libc.so.6" in read.needed
    assert (2, 2) <= read.glibc() <= elf.numbers(platform.libc_ver()[1])


def test_versions_are_compared_as_numbers() -> None:
    assert elf.numbers("2.9") < elf.numbers("2.28")
    assert elf.read(library("x", glibc="2.9")).glibc() == (2, 9)


def test_a_good_wheel_passes(tmp_path: Path) -> None:
    assert wheel.check_files(make(tmp_path), "2.28").startswith(f"{TAG}, 0.")
    with pytest.raises(wheel.Refused, match=r"asks for glibc 2\.17; at most 2\.16"):
        wheel.check_files(make(tmp_path), "2.16")


FI = "pathweave/lib/libfabric/libpathweave-fi.so"
ABOUT = f"pathweave-{VERSION}.dist-info"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({FI: None}, f"missing: {FI}"),
        ({"pathweave/__pycache__/x.pyc": b""}, "do not belong there: pathweave/__pycache__/x.pyc"),
        ({FI: b"text"}, f"{FI}: no ELF file"),
        ({FI: library("other")}, "does not export fi_prov_ini"),
        (
            {FI: library("fi_prov_ini", glibc="2.34")},
            "asks for glibc 2.34; the tag manylinux_2_28_x86_64 promises less",
        ),
        ({FI: library("fi_prov_ini", needed="librte_eal.so.23")}, "needs librte_eal.so.23"),
        ({FI: library("fi_prov_ini", machine=183)}, "is for aarch64, the tag for manylinux_2_28_x86_64"),
        ({FI: library("fi_prov_ini", more="runpath")}, "search path of its own: /own"),
        ({FI: library("fi_prov_ini", more="debug")}, "debug information"),
        ({f"{ABOUT}/WHEEL": b"Tag: py3-none-any\n"}, "has the tags"),
        ({f"{ABOUT}/METADATA": b"Name: other\n"}, "METADATA, Name: 'other'"),
        ({f"{ABOUT}/entry_points.txt": b""}, "does not declare the program"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, change: dict[str, bytes | None], said: str) -> None:
    with pytest.raises(wheel.Refused) as refused:
        wheel.check_files(make(tmp_path, change=change), None)
    assert said in str(refused.value)


def test_a_wheel_for_one_version_of_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wheel.Refused, match="cp311-abi3 works with every Python"):
        wheel.check_files(make(tmp_path, tag="cp312-cp312-manylinux_2_28_x86_64"), None)


def test_the_tutorial_is_a_script() -> None:
    written = wheel.tutorial()
    assert "make build" not in written
    assert "pathweave run quickstart.toml" in written
    assert '[ "$code" = 2 ]' in written
    assert subprocess.run(["sh", "-n"], input=written, text=True).returncode == 0


def test_a_terminal_hears_how_far_the_compiler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pathweave_build, "EVERY_S", 0.0)
    source, said = os.pipe(), os.pipe()
    os.write(
        source[1], b"   Compiling units\n    Building [=> ] 3/9: units\r    Building [==> ] 4/9: wire\rwarning: x\n"
    )
    os.close(source[1])
    terminal = io.BytesIO()
    pathweave_build._relay(source[0], said[1], terminal, "the module")
    os.close(said[1])
    assert os.read(said[0], 1000) == b"   Compiling units\nwarning: x\n"
    assert b"the module: 3 of 9 crates compiled, 0:00" in terminal.getvalue()
    assert b"the module: 4 of 9 crates compiled, 0:00" in terminal.getvalue()


def test_libraries_are_those_that_cargo_reports() -> None:
    lines = [
        {"reason": "compiler-artifact", "target": {"name": "pathweave_fi"}, "filenames": ["/t/x.rlib", "/t/lib_fi.so"]},
        {"reason": "compiler-artifact", "target": {"name": "libc"}, "filenames": ["/t/liblibc.rlib"]},
        {"reason": "build-finished", "success": True},
    ]
    told = "\n".join(map(json.dumps, lines)).encode()
    assert list(pathweave_build._built(told)) == [("pathweave_fi", Path("/t/lib_fi.so"))]


def executable(path: Path, text: str) -> Path:
    """A script of the shell."""
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="the libraries are for Linux")
def test_the_wheel_of_a_release_is_built_in_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for cargo and maturin write down what they are asked for."""
    lines = ""
    for name in pathweave_build.NAMES:
        (tmp_path / f"lib{name}.so").write_bytes(library("x"))
        told = {"reason": "compiler-artifact", "target": {"name": name}, "filenames": [str(tmp_path / f"lib{name}.so")]}
        lines += json.dumps(told) + "\n"
    (tmp_path / "messages").write_text(lines)
    asked = tmp_path / "asked"
    cargo = executable(tmp_path / "cargo", f'echo cargo "$@" "$PYO3_PYTHON" >>{asked}\ncat {tmp_path}/messages\n')
    for name in ("maturin", "strip"):
        executable(tmp_path / name, f'echo {name} "$@" >>{asked}\n')
    monkeypatch.setenv("CARGO", str(cargo))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(pathweave_build, "LIBRARIES", tmp_path / "lib")
    monkeypatch.setattr(sys, "argv", ["pathweave_build.py", "--profile", "tuned", "--out", "here"])
    with pytest.raises(SystemExit) as ended:
        pathweave_build.main()
    assert ended.value.code == 0
    made = sorted(str(path.relative_to(tmp_path / "lib")) for path in (tmp_path / "lib").rglob("*.so"))
    assert made == sorted(pathweave_build.NAMES.values())
    first, *stripped, last = asked.read_text().splitlines()
    assert first.startswith("cargo build --locked --lib --profile tuned -p pathweave-ofi -p pathweave-nccl ")
    assert first.endswith(f" {sys.executable}") and len(stripped) == 2
    expected = f"maturin build --interpreter {sys.executable} --profile tuned --strip --locked --out here"
    assert last == expected
    (tmp_path / "messages").write_text("")
    with pytest.raises(SystemExit, match="cargo reported 0 libraries, not 2: none"):
        pathweave_build.libraries("tuned")
    # Without optimisation at link time, the module is compiled with them.
    with pytest.raises(SystemExit):
        pathweave_build.libraries("release")
    release = asked.read_text().splitlines()[-1]
    assert release.startswith("cargo build --locked --lib --profile release -p pathweave-python -p pathweave-ofi ")


def test_without_a_compiler_it_says_what_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CARGO", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r"there is no cargo: pathweave is built by Rust 1\.90 or later"):
        pathweave_build._cargo()
