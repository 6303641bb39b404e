"""One rank of a group, in tests of hosts and their limits: `hosts.py SUITE`, with the variables of `ranks.py`."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from ranks import RANK, RANKS, begin, fails_with, model
from torch import nn

import pathweave.torch

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_DUMPABLE = 4


def drop_capabilities():
    """Gives the superuser's rights up, with which any memory may be read. Later threads have none, either."""
    version_3, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert LIBC.capset(version_3, data) == 0, os.strerror(ctypes.get_errno())


def forbid_copies():
    """Lets the kernel refuse access to this process's memory."""
    assert LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0


def sums_are_right(count=1_000_003):
    tensor = torch.full((count,), float(RANK))
    dist.all_reduce(tensor)
    assert bool((tensor == RANKS * (RANKS - 1) / 2).all())


def messages_arrive(count=6_000_001):
    """Several pieces."""
    got = torch.zeros(count)
    ops = [
        dist.P2POp(dist.isend, torch.arange(float(count)) + RANK, (RANK + 1) % RANKS),
        dist.P2POp(dist.irecv, got, (RANK - 1) % RANKS),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert torch.equal(got, torch.arange(float(count)) + (RANK - 1) % RANKS)


def copied():
    begin()
    sums_are_right()
    messages_arrive()
    copies = pathweave.torch.copies()
    assert copies["neighbours"] >= 1 and copies["copies"] >= 3 and copies["bytes"] >= 24_000_000, copies
    assert (copies["refused"], copies["refusal"]) == (0, None), copies
    dist.destroy_process_group()


def not_copied():
    begin()
    sums_are_right()
    messages_arrive()
    copies = pathweave.torch.copies()
    assert (copies["neighbours"], copies["copies"], copies["refused"]) == (0, 0, 0), copies
    dist.destroy_process_group()


def refused():
    """From the beginning, by one rank."""
    drop_capabilities()
    if RANK == 0:
        forbid_copies()
    begin()
    sums_are_right()
    messages_arrive()
    copies = pathweave.torch.copies()
    if RANK == 1:
        assert (copies["neighbours"], copies["copies"]) == (0, 0) and copies["refused"] >= 1, copies
        assert "the kernel does not copy from process" in copies["refusal"], copies
    dist.destroy_process_group()


def withdrawn():
    """Later, by one rank."""
    drop_capabilities()
    begin()
    sums_are_right()
    assert pathweave.torch.copies()["copies"] > 0
    dist.barrier()
    if RANK == 0:
        forbid_copies()
    dist.barrier()
    for _ in range(3):
        sums_are_right()
        messages_arrive()
    copies = pathweave.torch.copies()
    if RANK == 1:
        assert copies["refused"] >= 1 and "Operation not permitted" in copies["refusal"], copies
    dist.destroy_process_group()


def splits():
    """Rows of each pair of ranks, some of them none."""
    begin()
    for unit in (1, 1_001, 40_009):
        rows = [[(5 * source + 3 * to) % 4 * unit for to in range(RANKS)] for source in range(RANKS)]
        sent = torch.cat([torch.full((rows[RANK][to], 3), 100.0 * RANK + to) for to in range(RANKS)])
        received = [rows[source][RANK] for source in range(RANKS)]
        got = torch.zeros(sum(received), 3)
        dist.all_to_all_single(got, sent, received, rows[RANK])
        expected = [torch.full((rows[source][RANK], 3), 100.0 * source + RANK) for source in range(RANKS)]
        assert torch.equal(got, torch.cat(expected)), unit
    dist.destroy_process_group()


def small_floats():
    """They are moved only."""
    begin()
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        for count in (5, 70_001):
            tensor = torch.full((count,), float(2**RANK)).to(dtype)
            parts = [torch.zeros(count).to(dtype) for _ in range(RANKS)]
            dist.all_gather(parts, tensor)
            assert all(bool((parts[rank].float() == 2**rank).all()) for rank in range(RANKS))
            dist.broadcast(tensor, 1)
            assert bool((tensor.float() == 2).all())
        with fails_with(str(dtype).removeprefix("torch."), "sum"):
            dist.all_reduce(tensor)
    dist.destroy_process_group()


def groups():
    """1,000 groups, each of which is used and destroyed, leave nothing behind."""

    def held():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count()

    def round_of(count):
        for number in range(count):
            group = dist.new_group()
            tensor = torch.full((2 + number % 3,), 1.0)
            dist.all_reduce(tensor, group=group)
            assert tensor[0] == RANKS
            dist.destroy_process_group(group)

    begin()
    round_of(20)
    before = held()
    round_of(int(os.environ.get("GROUPS", "1000")))
    assert held() == before, (before, held())
    print(f"files, threads {before}", flush=True)
    dist.destroy_process_group()


def huge():
    """More bytes than 31 bits count."""
    begin(seconds=240)
    count = (22 << 30) // 10 + 1
    tensor = torch.full((count,), RANK, dtype=torch.uint8)
    if RANK == 0:
        tensor[0], tensor[count // 2], tensor[-1] = 7, 8, 9
    began = time.monotonic()
    dist.broadcast(tensor, 0)
    if RANK:
        assert (int(tensor[0]), int(tensor[count // 2]), int(tensor[-1])) == (7, 8, 9)
        tensor[0] = tensor[count // 2] = tensor[-1] = 0
        assert int(tensor.max()) == 0
        print(f"{count} bytes in {time.monotonic() - began:.1f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def training():
    """Losses of each step, in the output."""
    begin(seconds=60)
    torch.manual_seed(0)
    made = nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.SGD(made.parameters(), lr=0.05)
    for step in range(60):
        data = torch.Generator().manual_seed(100 * step + RANK)
        optimizer.zero_grad()
        loss = made(torch.randn(8, 64, generator=data)).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {float(loss.detach())!r}", flush=True)
        time.sleep(0.02)
    copies = pathweave.torch.copies()
    assert (copies["neighbours"], copies["refused"]) == (0, 0), copies
    dist.destroy_process_group()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
