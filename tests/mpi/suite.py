"""What an MPI must do over the provider, byte by byte: a ring, sums, exchanges of all with all, memory of others.

Run by ``run.py`` under a launcher; rank 0 prints a line when all is right. ``suite.py quick`` is a third of it.
"""

import sys

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.Get_rank(), WORLD.Get_size()
QUICK = "quick" in sys.argv[1:]
#: Around the bounds of eager messages, of packets and of pieces that are read.
SIZES = [0, 1, 1024, 16384, 16385, 262145] + ([] if QUICK else [7, 65537, 1 << 20, (4 << 20) + 3])


def pattern(size: int, seed: int) -> np.ndarray:
    """Bytes that tell where they come from."""
    at = np.arange(size, dtype=np.uint64)
    return ((at * 131 + (at >> 8) + seed * 17) & 0xFF).astype(np.uint8)


def same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    """End all ranks unless every byte is right."""
    if not np.array_equal(found, expected):
        wrong = int(np.argmax(found != expected)) if found.shape == expected.shape else -1
        print(f"rank {RANK} of {RANKS}: {what} differs at {wrong}", flush=True)
        WORLD.Abort(1)


def ring() -> None:
    """Each to the next, blocking and with many under way."""
    after, before = (RANK + 1) % RANKS, (RANK - 1) % RANKS
    for size in SIZES:
        into = np.zeros(size, np.uint8)
        WORLD.Sendrecv(pattern(size, RANK), after, 1, into, before, 1)
        same(into, pattern(size, before), f"a message of {size}")
    many = [np.zeros(size, np.uint8) for size in SIZES for _ in range(8)]
    out = [pattern(len(buffer), RANK + number) for number, buffer in enumerate(many)]
    requests = [WORLD.Irecv(buffer, before, 2) for buffer in many]
    requests += [WORLD.Isend(buffer, after, 2) for buffer in out]
    MPI.Request.Waitall(requests)
    for number, buffer in enumerate(many):
        same(buffer, pattern(len(buffer), before + number), f"message {number} of many")


def sums() -> None:
    """All-reduce of integers."""
    for count in [1, 1000, 100_000] + ([] if QUICK else [1_000_000]):
        own = np.arange(count, dtype=np.int64) * (RANK + 1)
        total = np.zeros(count, np.int64)
        WORLD.Allreduce(own, total)
        same(total, np.arange(count, dtype=np.int64) * (RANKS * (RANKS + 1) // 2), f"a sum of {count}")


def exchanges() -> None:
    """All with all, of one size and of different ones."""
    for size in [1, 1000, 20_000] + ([] if QUICK else [300_000]):
        out = np.concatenate([pattern(size, RANK * 100 + peer) for peer in range(RANKS)])
        into = np.zeros(size * RANKS, np.uint8)
        WORLD.Alltoall(out, into)
        parts = [pattern(size, peer * 100 + RANK) for peer in range(RANKS)]
        same(into, np.concatenate(parts), f"an exchange of {size}")
    counts = [(RANK + peer) * 1000 % 7001 for peer in range(RANKS)]
    out = np.concatenate([pattern(count, RANK * 100 + peer) for peer, count in enumerate(counts)])
    into = np.zeros(sum(counts), np.uint8)
    WORLD.Alltoallv([out, counts], [into, counts])
    parts = [pattern(count, peer * 100 + RANK) for peer, count in enumerate(counts)]
    same(into, np.concatenate(parts), "an exchange of different sizes")


def windows() -> None:
    """One-sided: put, get, accumulate, fetch, compare, under fences and locks."""
    size = 20_000 if QUICK else 200_000
    memory = np.zeros(size * RANKS, np.uint8)
    window = MPI.Win.Create(memory, 1, comm=WORLD)
    window.Fence()
    # What is put must stay until the fence.
    put = [pattern(size, RANK * 10 + peer) for peer in range(RANKS)]
    for peer in range(RANKS):
        window.Put(put[peer], peer, [RANK * size, size, MPI.BYTE])
    window.Fence()
    same(memory, np.concatenate([pattern(size, peer * 10 + RANK) for peer in range(RANKS)]), "what others put")
    after = (RANK + 1) % RANKS
    got = np.zeros(size * RANKS, np.uint8)
    window.Get(got, after)
    window.Fence()
    same(got, np.concatenate([pattern(size, peer * 10 + after) for peer in range(RANKS)]), "what was got")
    window.Free()
    words = np.zeros(4, np.int64)
    window = MPI.Win.Create(words, 8, comm=WORLD)
    turns = 20 if QUICK else 100
    before, one, two = np.zeros(1, np.int64), np.ones(1, np.int64), np.full(2, RANK + 1, np.int64)
    for _ in range(turns):
        window.Lock(0, MPI.LOCK_SHARED)
        window.Fetch_and_op(one, before, 0, 0, MPI.SUM)
        window.Accumulate(two, 0, [1, 2, MPI.LONG], MPI.SUM)
        window.Unlock(0)
    WORLD.Barrier()
    if RANK == 0:
        window.Lock(0)
        same(words[:3], np.array([turns * RANKS] + [turns * RANKS * (RANKS + 1) // 2] * 2), "sums in a window")
        window.Unlock(0)
    WORLD.Barrier()
    window.Free()


def tensors() -> bool:
    """Sums of PyTorch's tensors, where it is installed."""
    try:
        import torch
    except ImportError:
        return False
    tensor = torch.arange(100_000, dtype=torch.float64) * (RANK + 1)
    WORLD.Allreduce(MPI.IN_PLACE, tensor.numpy())
    expected = torch.arange(100_000, dtype=torch.float64) * (RANKS * (RANKS + 1) // 2)
    same(tensor.numpy(), expected.numpy(), "a sum of tensors")
    return True


def main() -> None:
    """All of it."""
    ring()
    sums()
    exchanges()
    windows()
    parts = "ring, sums, exchanges, windows" + (", tensors" if tensors() else "")
    WORLD.Barrier()
    if RANK == 0:
        library = MPI.Get_library_version().splitlines()[0].strip(" ,\0")
        print(f"exact among {RANKS} ranks: {parts}; {library}", flush=True)


main()
