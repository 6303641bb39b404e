"""The program `pathweave`, as a script of the package and as `python -m pathweave`.

Everything is the program's own, except for a sweep on a Dask cluster (`sweep SWEEP --scheduler ADDRESS`).
"""

from __future__ import annotations

import argparse
import sys

from . import ScenarioError, _pathweave, sweep

_DONE, _INPUT, _UNFINISHED, _INTERRUPTED = 0, 2, 3, 130
_SCHEDULER = "--scheduler"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code, those of `pathweave`."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["sweep"] and any(word.split("=")[0] == _SCHEDULER for word in given):
        return _on_cluster(given[1:])
    return _pathweave.program(["pathweave", *given])


def _on_cluster(words: list[str]) -> int:
    """A sweep whose runs a Dask cluster makes."""
    parser = argparse.ArgumentParser(prog="pathweave sweep", description="run a sweep on a Dask cluster")
    parser.add_argument("sweep", metavar="SWEEP", help="sweep file (TOML)")
    parser.add_argument("--out", metavar="DIR", help="folder of the dataset [default: results/NAME-sweep]")
    parser.add_argument(_SCHEDULER, metavar="ADDRESS", required=True, help="Dask scheduler: tcp://host:8786")
    parser.add_argument("--quiet", "-q", action="store_true", help="say nothing but errors")
    given = parser.parse_args(words)
    try:
        result = sweep(given.sweep, out=given.out, scheduler=given.scheduler, progress=not given.quiet)
    except (ScenarioError, OSError, ImportError) as why:
        print(why, file=sys.stderr)
        return _INPUT
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept, the same command goes on", file=sys.stderr)
        return _INTERRUPTED
    for label, reasons in result.failed.items():
        print(f"failed: {label}: {reasons[0].rstrip()}", file=sys.stderr)
    if not given.quiet:
        print(f"dataset digest: {result.digest}\nreport: {result.path / 'report.html'}")
    trouble = result.partial or result.failed or result.summary["open_runs"]
    return _UNFINISHED if trouble else _DONE


if __name__ == "__main__":
    sys.exit(main())
