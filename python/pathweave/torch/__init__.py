"""The backend `pathweave` of `torch.distributed`, for tensors in host memory.

With torch 2.14 or later and `pip install 'pathweave[torch]'`:

    import torch.distributed as dist
    dist.init_process_group("cpu:pathweave,cuda:nccl")

Memory of tensors belongs to an operation from its call until `wait` returns, or its future is complete.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

LEAST_TORCH = (2, 14)


def _create(opts: Any, options: Any) -> Any:
    from pathweave.torch._backend import PathweaveBackend

    return PathweaveBackend(opts.store, opts.group_rank, opts.group_size, opts.timeout)


def register() -> None:
    """Registers the backend, once. torch 2.14 calls this itself when `pathweave` is named."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise RuntimeError(f"the backend pathweave needs torch {least} or later; this is {torch.__version__}")
    if not hasattr(dist.Backend, "PATHWEAVE"):
        dist.Backend.register_backend("pathweave", _create, extended_api=True, devices=["cpu"])


def copies() -> dict[str, Any]:
    """Returns this process's transfers so far with processes of its host.

    `neighbours` have memory that this process copies, `copies` times and `bytes` in all. Packets were used for
    `refused` processes or copies, the last time because of `refusal`.
    """
    from pathweave.torch._work import Process

    return Process.get().copies()
