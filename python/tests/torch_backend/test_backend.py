"""The backend of torch.distributed, on loopback, by 2 to 4 processes. Skipped without torch."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed; `make test-torch` installs it for these tests")

RANKS = Path(__file__).with_name("ranks.py")
LIMIT_S = 300


def run(suite, ranks, folder, script=RANKS, **settings):
    """Runs a suite and returns the output and exit code of each rank."""
    base = {key: value for key, value in os.environ.items() if not key.startswith("PATHWEAVE_")}
    base |= {"PATHWEAVE_IFACE": "lo", "PATHWEAVE_PROTECTION": "insecure", "PATHWEAVE_PEER_TIMEOUT": "5"}
    base |= {"WORLD_SIZE": str(ranks), "RENDEZVOUS": str(folder / "store"), "OMP_NUM_THREADS": "1"}
    base |= {"GLOO_SOCKET_IFNAME": "lo"} | settings
    processes = [
        subprocess.Popen(
            [sys.executable, script, suite],
            env=base | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        return [(process.communicate(timeout=LIMIT_S)[0], process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()


def passes(results):
    for rank, (output, code) in enumerate(results):
        assert code == 0, f"rank {rank} ended with {code}:\n{output}"


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_every_call_gives_its_result(ranks, tmp_path):
    passes(run("cases", ranks, tmp_path))


def test_every_call_gives_its_result_encrypted(tmp_path):
    key = tmp_path / "key"
    key.write_text(secrets.token_hex(32))
    key.chmod(0o600)
    passes(run("cases", 2, tmp_path, PATHWEAVE_PROTECTION="encrypt", PATHWEAVE_KEY_FILE=str(key)))


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_reductions_are_those_of_wide_numbers_and_equal_at_all_ranks(ranks, tmp_path):
    passes(run("reductions", ranks, tmp_path))


@pytest.mark.parametrize("ranks", [2, 3])
def test_calls_that_differ_are_errors_at_all_ranks(ranks, tmp_path):
    passes(run("unequal", ranks, tmp_path))


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_killed_rank_is_named_within_the_peer_timeout(ranks, tmp_path):
    results = run("killed", ranks, tmp_path)
    passes(results[:-1])
    assert results[-1][1] == -9
    assert all("lost in time" in output for output, _ in results[:-1])


def test_a_rank_that_is_late_is_named(tmp_path):
    passes(run("late", 3, tmp_path))


def test_an_abort_reaches_the_others(tmp_path):
    passes(run("aborted", 3, tmp_path))


def test_a_process_ends_with_code_0_while_work_is_pending(tmp_path):
    passes(run("pending", 2, tmp_path))


@pytest.mark.parametrize("ranks", [2, 4])
def test_training_gives_what_gloo_gives(ranks, tmp_path):
    passes(run("train", ranks, tmp_path))


def test_a_missing_key_is_an_error_that_names_the_variable(tmp_path):
    (output, code), _ = run("late", 2, tmp_path, PATHWEAVE_PROTECTION="encrypt")
    assert code != 0 and "PATHWEAVE_KEY_FILE" in output
