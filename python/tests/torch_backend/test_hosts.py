"""Processes of one host, processes of two, and limits of the backend of torch.distributed. Skipped without torch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("torch.distributed", reason="torch is not installed; `make test-torch` installs it for these tests")

from test_backend import LIMIT_S, passes, run

SCRIPT = Path(__file__).with_name("hosts.py")
GIB = 1 << 30
LINKS = ("wire0", "wire1")


def available_bytes():
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


@pytest.mark.parametrize("ranks", [2, 3])
def test_memory_of_processes_of_one_host_is_copied(ranks, tmp_path):
    passes(run("copied", ranks, tmp_path, SCRIPT))


def test_nothing_is_copied_if_shared_memory_is_off(tmp_path):
    passes(run("not_copied", 2, tmp_path, SCRIPT, PATHWEAVE_SHARED_MEMORY="off"))


@pytest.mark.parametrize("suite", ["refused", "withdrawn"])
def test_packets_are_used_if_the_kernel_refuses_copies(suite, tmp_path):
    results = run(suite, 2, tmp_path, SCRIPT)
    passes(results)
    said = results[1][0].count("packets are used between processes of this host")
    assert said == 1, results[1][0]


def test_rows_of_any_number_are_exchanged(tmp_path):
    passes(run("splits", 3, tmp_path, SCRIPT))


def test_floats_of_eight_bits_are_moved_and_their_reductions_refused_by_name(tmp_path):
    passes(run("small_floats", 2, tmp_path, SCRIPT))


def test_groups_leave_no_descriptors_and_threads_behind(tmp_path):
    passes(run("groups", 2, tmp_path, SCRIPT))


@pytest.mark.skipif(available_bytes() < 8 * GIB, reason="8 GiB of free memory are needed")
def test_a_tensor_of_more_than_2_gib_is_broadcast(tmp_path):
    passes(run("huge", 2, tmp_path, SCRIPT))


def ip(*words, check=True):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check).stdout


@pytest.fixture
def hosts():
    """Two namespaces, with the links of `LINKS` between them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    name = f"pwt{os.getpid()}-"
    try:
        for host in "01":
            ip("netns", "add", name + host)
            ip("-n", name + host, "link", "set", "lo", "up")
        for number, link in enumerate(LINKS):
            ends = ["type", "veth", "peer", "name", link, "netns", name + "1"]
            ip("-n", name + "0", "link", "add", link, *ends)
            for host in "01":
                ip("-n", name + host, "address", "add", f"10.77.{number}.{host}/24", "dev", link)
                ip("-n", name + host, "link", "set", link, "up")
        yield [name + "0", name + "1"]
    finally:
        for host in "01":
            ip("netns", "delete", name + host, check=False)


def sent(host, link):
    return int(ip("netns", "exec", host, "cat", f"/sys/class/net/{link}/statistics/tx_bytes"))


def train(hosts, folder, at_step=None, act=None):
    """Trains with one rank on each host; calls `act` at a step. Returns the losses of each rank."""
    folder.mkdir()
    base = {key: value for key, value in os.environ.items() if not key.startswith("PATHWEAVE_")}
    base |= {"PATHWEAVE_IFACE": ",".join(LINKS), "PATHWEAVE_PROTECTION": "insecure", "PATHWEAVE_PEER_TIMEOUT": "10"}
    base |= {"WORLD_SIZE": "2", "RENDEZVOUS": str(folder / "store"), "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, SCRIPT, "training"],
            env=base | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank, host in enumerate(hosts)
    ]
    limit = threading.Timer(LIMIT_S, lambda: [process.kill() for process in processes])
    limit.start()
    try:
        lines = []
        for line in processes[0].stdout:
            lines.append(line)
            if act and line.startswith(f"step {at_step}:"):
                act()
        outputs = ["".join(lines), processes[1].communicate()[0]]
        passes([(output, process.wait()) for output, process in zip(outputs, processes, strict=True)])
        return [[line for line in output.splitlines() if line.startswith("step ")] for output in outputs]
    finally:
        limit.cancel()
        for process in processes:
            process.kill()


def test_training_goes_on_when_one_of_two_links_is_cut(hosts, tmp_path):
    whole = train(hosts, tmp_path / "whole")
    before = {}

    def cut():
        before.update({link: sent(hosts[0], link) for link in LINKS})
        ip("-n", hosts[0], "link", "set", LINKS[0], "down")

    started = {link: sent(hosts[0], link) for link in LINKS}
    assert train(hosts, tmp_path / "cut", 20, cut) == whole
    assert all(before[link] > started[link] + 500_000 for link in LINKS), "both links were used before the cut"
    assert sent(hosts[0], LINKS[1]) > before[LINKS[1]] + 5_000_000
    assert sent(hosts[0], LINKS[0]) < before[LINKS[0]] + 1_000_000
