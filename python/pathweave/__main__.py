"""`python -m pathweave` and the command `pathweave` of the wheel: the program itself.

All commands and options are those of the program (`pathweave --help`, docs/cli.md). One is added: `sweep --scheduler
ADDRESS` makes the runs of a sweep on a Dask cluster.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from . import _pathweave

_DONE, _INPUT, _UNFINISHED, _INTERRUPTED = 0, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code. For a process of its own: the program listens for Ctrl-C only once.

    Args:
        arguments: Those after the program's name; of this process unless given.

    Returns:
        0 if all is well, 2 if the input is wrong, 130 after Ctrl-C; docs/cli.md has all.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["sweep"] and any(word.split("=")[0] == "--scheduler" for word in words):
        return _sweep(words[1:])
    # Python's handler would run only after the program ends. Where the caller ignores Ctrl-C it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    again = [sys.executable, "-P", "-m", "pathweave"]
    return _pathweave.program(again, str(Path(__file__).parent / "lib"), ["pathweave", *words])


def _sweep(arguments: Sequence[str]) -> int:
    """A sweep on a Dask cluster."""
    from . import ScenarioError, sweep

    parser = argparse.ArgumentParser(prog="pathweave sweep", description="A sweep, its runs made by a Dask cluster.")
    parser.add_argument("sweep", metavar="SWEEP", help="sweep file (TOML)")
    parser.add_argument("--scheduler", metavar="ADDRESS", required=True, help="the cluster: tcp://host:8786")
    parser.add_argument("--out", metavar="DIR", help="folder of the dataset [default: results/NAME-sweep]")
    parser.add_argument("--quiet", "-q", action="store_true", help="print only errors and the place of the report")
    given = parser.parse_args(arguments)
    try:
        result = sweep(given.sweep, out=given.out, scheduler=given.scheduler, progress=not given.quiet)
    except (ScenarioError, OSError, ImportError) as why:
        print(why, file=sys.stderr)
        return _INPUT
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept, the same command continues", file=sys.stderr)
        return _INTERRUPTED
    for label, reasons in result.failed.items():
        print(f"failed: {label}: {reasons[0].rstrip()}", file=sys.stderr)
    if not given.quiet:
        print(f"dataset digest: {result.digest}")
    print(f"report: {result.path / 'report.html'}")
    trouble = result.partial or result.failed or result.summary["open_runs"]
    return _UNFINISHED if trouble else _DONE


if __name__ == "__main__":
    sys.exit(main())
