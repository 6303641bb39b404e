#!/usr/bin/env python3
"""libfabric's own tests (fabtests) over the provider, on loopback, where they are installed.

The tests are those that fabtests' script ``runfabtests.sh`` lists. How each ended is compared with what the provider
offers: a test for something that it does not offer (``NOT_OFFERED``) must say so, and every other must pass. That
script itself is not run, because at its end it kills every process whose name begins with ``fi_``.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

#: The address of both ends.
ADDRESS = "127.0.0.1"
#: How long a server has until its client starts.
START_SECONDS = 0.5
#: How long a server may go on after its client.
AFTER_SECONDS = 20.0
#: Processes of a test of several nodes.
NODES = 3

#: Exit codes of a test that has found nothing to run on; some programs give the negative number.
NOT_RUN = {code & 255 for code in (errno.ENODATA, errno.ENOSYS, -errno.ENODATA, -errno.ENOSYS)}

#: Tests of what the provider does not offer, by patterns of their command lines, and why.
NOT_OFFERED = [
    (r" -e msg\b|^fi_msg(?!_inject)|^fi_cm_data", "connected endpoints (FI_EP_MSG)"),
    (r" -e dgram\b|^fi_dgram", "unreliable datagrams (FI_EP_DGRAM)"),
    (r"^fi_shared_ctx", "shared transmit and receive contexts"),
    (r"^fi_scalable_ep", "scalable endpoints"),
    (r"^fi_rdm_shared_av", "address vectors that several processes share"),
    (r"^fi_rdm_rma_trigger|^fi_rdm_deferred_wq", "triggered operations"),
    (r" -k\b", "message prefixes (FI_MSG_PREFIX), which only datagrams have here"),
    (r"^fi_poll", "poll sets, which libfabric 2 has given up"),
    (r"^fi_multinode_coll", "collective operations"),
]


class Outcome(Enum):
    """How a test ended."""

    PASSED = "passed"
    NOT_RUN = "not run"
    FAILED = "failed"


@dataclass
class Result:
    """A test, and how it ended."""

    outcome: Outcome
    seconds: float
    output: str


def tests(script: Path, sets: list[str]) -> list[tuple[str, str]]:
    """The tests of the sets: the name of the set, and the command line without what is common to all."""
    text = script.read_text()
    found = []
    for name in sets:
        lines = re.search(rf"^{name}_tests=\((.*?)^\)", text, flags=re.DOTALL | re.MULTILINE)
        if not lines:
            raise SystemExit(f"{script} has no set of tests {name!r}")
        found += [(name, line) for line in re.findall(r'"([^"]+)"', lines[1])]
    return found


def why_not(command: str) -> str | None:
    """What a test needs that the provider does not offer."""
    return next((why for pattern, why in NOT_OFFERED if re.search(pattern, command)), None)


class Runner:
    """Starts the programs of a test and looks at their exit codes."""

    def __init__(self, options: argparse.Namespace, environment: dict[str, str]) -> None:
        self.options = options
        self.environment = environment

    def start(self, words: Iterable[str], log: Path) -> subprocess.Popen[bytes]:
        """A program of fabtests, in a group of its own, with its output in a file."""
        first, *rest = words
        path = self.options.fabtests / "bin" / first
        with log.open("wb") as file:
            return subprocess.Popen(
                [path, *rest],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, process: subprocess.Popen[bytes], until: float) -> int:
        """The exit code; of what is not done in time it is that of ``timeout``."""
        try:
            return process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            # Its own group, and nobody else's.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 124

    def run(self, kind: str, command: str) -> Result:
        """Runs a test."""
        begun = time.monotonic()
        until = begun + self.options.seconds
        words = [word.replace("SERVER_ADDR", ADDRESS).replace("GOOD_ADDR", ADDRESS) for word in shlex.split(command)]
        words += ["-p", "pathweave"]
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder)
            if kind in ("unit", "neg_unit", "regression"):
                codes = [self.wait(self.start(words, logs / "alone"), until)]
                if kind == "neg_unit":
                    # It asks for a provider that cannot be.
                    codes = [0 if codes[0] == errno.ENODATA else 1]
            else:
                codes = self.several(kind, words, logs, until)
            output = "".join(f"--- {log.name}\n{log.read_text(errors='replace')}" for log in sorted(logs.iterdir()))
        # Who waits for an end that has found nothing fails in its own way.
        if all(codes) and any(code in NOT_RUN for code in codes):
            outcome = Outcome.NOT_RUN
        else:
            outcome = Outcome.FAILED if any(codes) else Outcome.PASSED
        return Result(outcome, time.monotonic() - begun, f"exit codes {codes}\n{output}")

    def several(self, kind: str, words: list[str], logs: Path, until: float) -> list[int]:
        """A server and a client; or as many nodes as there are to be."""
        if kind == "multinode":
            words = [*words, "-n", str(NODES), "-s", ADDRESS]
            server, clients = words, [words] * (NODES - 1)
        else:
            server, clients = [*words, "-s", ADDRESS], [[*words, "-s", ADDRESS, ADDRESS]]
        first = self.start(server, logs / "server")
        time.sleep(START_SECONDS)
        others = [self.start(client, logs / f"client{index}") for index, client in enumerate(clients)]
        codes = [self.wait(other, until) for other in others]
        # Without its client a server does not end by itself.
        grace = AFTER_SECONDS if not any(codes) else 2.0
        return [self.wait(first, min(until, time.monotonic() + grace)), *codes]


def judge(kind: str, command: str, result: Result) -> str | None:
    """What is wrong with how a test ended."""
    needs = why_not(command) if kind != "neg_unit" else None
    if result.outcome is Outcome.FAILED:
        return "failed"
    if needs is None and result.outcome is Outcome.NOT_RUN:
        return "did not run, but what it needs is offered"
    if needs is not None and result.outcome is Outcome.PASSED:
        return f"passed, but needs {needs}, which should not be offered"
    return None


def main() -> int:
    """All tests of the sets that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="the provider's library")
    parser.add_argument("--fabtests", type=Path, help="where fabtests is installed: its folder bin has the programs")
    parser.add_argument("--sets", default="unit,neg_unit,functional,short", help="sets of tests, with commas")
    parser.add_argument("--only", default="", help="a pattern of command lines: run these alone")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long a test may take")
    parser.add_argument("--verbose", action="store_true", help="what each test printed")
    options = parser.parse_args()
    if options.fabtests is None:
        found = shutil.which("runfabtests.sh")
        if found is None:
            print("skipped: fabtests is not installed; docs/mpi.md says how to build it, FABTESTS=... where it is")
            return 0
        options.fabtests = Path(found).parents[1]
    # One of the tests has itself interrupted. Commands in the background of a shell ignore that; these must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    script = options.fabtests / "bin/runfabtests.sh"
    if not script.is_file():
        parser.error(f"there is no {script}")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(options.library, Path(folder) / "libpathweave-fi.so")
        # libpsm_infinipath, which some libfabrics are linked to, takes SIGINT for itself unless it is told not to.
        psm = {"IPATH_NO_BACKTRACE": "1"}
        defaults = {"PATHWEAVE_PROTECTION": "insecure", "PATHWEAVE_IFACE": "lo", **psm}
        runner = Runner(options, {**defaults, **os.environ, "FI_PROVIDER_PATH": folder})
        counts: Counter[Outcome] = Counter()
        wrong = []
        for kind, command in tests(script, options.sets.split(",")):
            if not re.search(options.only, command):
                continue
            result = runner.run(kind, command)
            counts[result.outcome] += 1
            verdict = judge(kind, command, result)
            print(f"{command}: {result.outcome.value}, {result.seconds:.1f} s", flush=True)
            if verdict:
                wrong.append(command)
            if verdict or options.verbose:
                print(f"{verdict or ''}\n{result.output}", flush=True)
    print(", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome))
    for command in wrong:
        print(f"not as it should be: {command}")
    return bool(wrong)


sys.exit(main())
