#!/usr/bin/env python3
"""All-reduce of pathweave beside Gloo, on loopback: `tests/torch/bench.py [RANKS ...]`.

The two take turns in one run, so that a busy machine disturbs both alike. Prints
the medians of the rounds and their ratio. With a rank in the environment, this is
one of the processes.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

SIZES = {"64 KiB": (64 << 10, 60), "1 MiB": (1 << 20, 20), "64 MiB": (64 << 20, 1)}
ROUNDS = 7
BACKENDS = ("pathweave", "gloo")


def rank() -> None:
    """Measures, as one of the ranks."""
    import torch
    import torch.distributed as dist

    import pathweave.torch

    pathweave.torch.register()
    torch.set_num_threads(1)
    own, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"file://{os.environ['RENDEZVOUS']}", rank=own, world_size=ranks)
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    for title, (size, times) in SIZES.items():
        tensor = torch.zeros(size // 4)
        rounds: dict[str, list[float]] = {name: [] for name in BACKENDS}
        cpu: dict[str, list[float]] = {name: [] for name in BACKENDS}
        for number in range(ROUNDS + 1):
            for name, group in groups.items():
                dist.barrier(group=groups["gloo"])
                began, used = time.perf_counter(), time.process_time()
                for _ in range(times):
                    dist.all_reduce(tensor, group=group)
                if number:
                    rounds[name].append((time.perf_counter() - began) / times)
                    cpu[name].append((time.process_time() - used) / times)
        if own == 0:
            ours, theirs = (statistics.median(rounds[name]) for name in BACKENDS)
            ratio = statistics.median(b / a for a, b in zip(rounds["pathweave"], rounds["gloo"], strict=True))
            work = [statistics.median(cpu[name]) * 1e9 / size for name in BACKENDS]
            print(
                f"{ranks} ranks, {title}: pathweave {ours * 1e6:.0f} us, Gloo {theirs * 1e6:.0f} us, "
                f"{ratio:.2f} times as fast; CPU {work[0]:.2f} and {work[1]:.2f} ns/B",
                flush=True,
            )
    dist.destroy_process_group()


def main() -> None:
    """Starts the ranks."""
    settings = {"PATHWEAVE_IFACE": "lo", "PATHWEAVE_PROTECTION": "insecure", "GLOO_SOCKET_IFNAME": "lo"}
    for ranks in [int(word) for word in sys.argv[1:]] or [2, 4]:
        with tempfile.TemporaryDirectory() as folder:
            base = settings | dict(os.environ) | {"WORLD_SIZE": str(ranks), "RENDEZVOUS": f"{folder}/store"}
            processes = [
                subprocess.Popen([sys.executable, __file__], env=base | {"RANK": str(number)})
                for number in range(ranks)
            ]
            codes = [process.wait() for process in processes]
            if any(codes):
                sys.exit("a rank has failed")


rank() if "RANK" in os.environ else main()
