"""`python -m pathweave sweep`: the program's command, with the runs on a Dask cluster where wanted."""

from __future__ import annotations

import argparse
import sys

from . import ScenarioError, __version__, sweep

_DONE, _INPUT, _UNFINISHED, _INTERRUPTED = 0, 2, 3, 130


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit code, those of `pathweave`."""
    parser = argparse.ArgumentParser(prog="python -m pathweave", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("sweep", help="run a scenario with every combination of the values of its fields")
    command.add_argument("sweep", metavar="SWEEP", help="sweep file (TOML)")
    command.add_argument("--out", metavar="DIR", help="folder of the dataset [default: results/NAME-sweep]")
    command.add_argument("--jobs", "-j", type=int, metavar="N", help="runs at a time on this machine")
    command.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler that makes the runs: tcp://host:8786")
    command.add_argument("--quiet", "-q", action="store_true", help="say nothing but errors")
    given = parser.parse_args(arguments)
    try:
        result = sweep(given.sweep, out=given.out, jobs=given.jobs, scheduler=given.scheduler, progress=not given.quiet)
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
