"""Builds the wheel: the module with the program in it, the libfabric provider, NCCL's plug-in.

It is the build backend of `pip install .` (PEP 517), and a script for the wheel of a release:

    python python/tools/pathweave_build.py --profile tuned --out target/wheels

maturin makes the wheel. It packs one library; so the other two are compiled before, beside the module, and laid into
the package. Pip keeps what a backend prints to itself: how far the compiler is goes to the terminal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "python" / "pathweave" / "lib"
# What each crate's library is called for the programs that look for it.
NAMES = {
    "pathweave_fi": "libfabric/libpathweave-fi.so",
    "nccl_net_pathweave": "libnccl-net-pathweave.so",
}
# How often the terminal hears how far the compiler is.
EVERY_S = 2.0
COUNT = re.compile(rb"Building \[[=> ]*\] (\d+)/(\d+)")


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel, as pip asks for it."""
    from maturin import build_wheel as build

    return str(_with_libraries(build, wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel that refers to the source."""
    from maturin import build_editable as build

    return str(_with_libraries(build, wheel_directory, config_settings, metadata_directory))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Writes the metadata alone."""
    from maturin import prepare_metadata_for_build_wheel as prepare

    _cargo()
    return str(prepare(metadata_directory, config_settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Refuses: the source is the repository."""
    raise NotImplementedError("there is no source distribution: install from the repository, `pip install .`")


def _with_libraries(build: Any, *arguments: Any) -> Any:
    with _progress("the libraries"):
        libraries("release")
    with _progress("the module"):
        return build(*arguments)


def _cargo() -> str:
    """The program `cargo`."""
    found = os.environ.get("CARGO") or shutil.which("cargo")
    if found is None:
        sys.exit("there is no cargo: pathweave is built by Rust 1.90 or later, and a C compiler; docs/install.md")
    return found


def libraries(profile: str) -> list[Path]:
    """Compiles provider and plug-in, and lays them into the package. They are for Linux."""
    shutil.rmtree(LIBRARIES, ignore_errors=True)
    if sys.platform != "linux":
        return []
    # The module is named, too: with the features of all three at once, no crate is compiled twice. A profile that
    # optimises at link time compiles the module's crates in another way for maturin, so that naming it is in vain:
    # cargo does without such optimisation for crates that are cdylib and rlib.
    named = ("python", "ofi", "nccl") if profile == "release" else ("ofi", "nccl")
    packages = [word for name in named for word in ("-p", f"pathweave-{name}")]
    command = [_cargo(), "build", "--locked", "--lib", "--profile", profile, *packages]
    done = subprocess.run(
        [*command, "--message-format", "json-render-diagnostics"],
        cwd=ROOT,
        env=os.environ | _as_maturin(),
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}")
    made = [_lay(target, built) for target, built in _built(done.stdout)]
    if len(made) != len(NAMES):
        sys.exit(f"cargo reported {len(made)} libraries, not {len(NAMES)}: {', '.join(map(str, made)) or 'none'}")
    return made


def _as_maturin() -> dict[str, str]:
    """Variables that maturin sets, too: with others the bindings would be compiled twice."""
    major, minor = sys.version_info[:2]
    bits = 64 if sys.maxsize > 2**32 else 32
    signature = f"{sys.implementation.name}-{major}.{minor}-{bits}bit"
    return {"PYO3_PYTHON": sys.executable, "PYO3_ENVIRONMENT_SIGNATURE": signature}


def _built(messages: bytes) -> Iterator[tuple[str, Path]]:
    """The libraries that cargo says it has built."""
    for line in messages.splitlines():
        told = json.loads(line)
        name = told.get("target", {}).get("name")
        if told["reason"] == "compiler-artifact" and name in NAMES:
            yield name, Path(next(file for file in told["filenames"] if file.endswith(".so")))


def _lay(target: str, built: Path) -> Path:
    """Copies a library into the package, under the name by which it is looked for, without symbols."""
    place = LIBRARIES / NAMES[target]
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built, place)
    place.chmod(0o755)
    if shutil.which("strip"):
        subprocess.run(["strip", place], check=True)
    return place


@contextlib.contextmanager
def _progress(what: str) -> Iterator[None]:
    """Shows on the terminal how far the compiler is, if nobody else does."""
    terminal = None if os.isatty(2) else _terminal()
    if terminal is None:
        yield
        return
    # cargo draws its bar for nobody, and its count is read from it.
    asked = {"CARGO_TERM_PROGRESS_WHEN": "always", "CARGO_TERM_PROGRESS_WIDTH": "80"}
    before = {name: os.environ.get(name) for name in asked}
    os.environ.update(asked)
    said, end = os.dup(2), os.pipe()
    os.dup2(end[1], 2)
    os.close(end[1])
    reader = threading.Thread(target=_relay, args=(end[0], said, terminal, what))
    reader.start()
    try:
        yield
    finally:
        os.dup2(said, 2)
        reader.join()
        os.close(said)
        terminal.close()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _terminal() -> BinaryIO | None:
    """The terminal from which this process was started."""
    try:
        return open("/dev/tty", "wb", buffering=0)
    except OSError:
        return None


def _relay(source: int, said: int, terminal: BinaryIO, what: str) -> None:
    """Passes on what is said, but for the bar, of which the terminal gets the count."""
    start = shown = time.monotonic()
    rest = b""
    with os.fdopen(source, "rb", buffering=0) as read:
        while part := read.read(65536):
            *lines, rest = re.split(rb"(?<=[\r\n])", rest + part)
            for line in lines:
                if not (count := COUNT.search(line)):
                    os.write(said, line)
                elif time.monotonic() - shown >= EVERY_S:
                    shown = time.monotonic()
                    terminal.write(_line(what, int(count[1]), int(count[2]), shown - start))
    os.write(said, rest)


def _line(what: str, done: int, of: int, seconds: float) -> bytes:
    """A line over the last one; its last character is where pip's wheel turns."""
    minutes, left = divmod(int(seconds), 60)
    return f"\r\x1b[K  {what}: {done} of {of} crates compiled, {minutes}:{left:02} -".encode()


def main() -> None:
    """Builds the wheel of a release."""
    parser = argparse.ArgumentParser(description="Builds the wheel with all that is in it.")
    parser.add_argument("--profile", default="release", help="of cargo [default: release]")
    parser.add_argument("--out", default="target/wheels", metavar="DIR", help="[default: target/wheels]")
    parser.add_argument("--only-libraries", action="store_true", help="maturin is called by somebody else")
    given = parser.parse_args()
    libraries(given.profile)
    if given.only_libraries:
        return
    options = ["--profile", given.profile, "--strip", "--locked", "--out", given.out]
    sys.exit(subprocess.run(["maturin", "build", "--interpreter", sys.executable, *options], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
