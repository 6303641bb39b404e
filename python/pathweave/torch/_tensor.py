"""Memory, types and reductions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ReduceOp

Memory = tuple[int, int]
Finish = Callable[[], None]

_OPS = {
    ReduceOp.RedOpType.SUM: "sum",
    ReduceOp.RedOpType.AVG: "avg",
    ReduceOp.RedOpType.PRODUCT: "product",
    ReduceOp.RedOpType.MIN: "min",
    ReduceOp.RedOpType.MAX: "max",
    ReduceOp.RedOpType.BAND: "band",
    ReduceOp.RedOpType.BOR: "bor",
    ReduceOp.RedOpType.BXOR: "bxor",
    ReduceOp.RedOpType.PREMUL_SUM: "sum",
}
_DTYPES = {
    getattr(torch, name): name
    for name in (
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64"),
    )
}


def fail(text: object) -> NoReturn:
    raise dist.DistBackendError(f"pathweave: {text}")


def copy(to: torch.Tensor, source: torch.Tensor) -> None:
    to.copy_(source)


class Tensor:
    """Contiguous memory with the values of a tensor, and the type of its elements."""

    def __init__(self, tensor: torch.Tensor, fill: bool = True, use: str = "input") -> None:
        if tensor.layout != torch.strided:
            fail(f"{use} is a tensor of layout {tensor.layout}; only dense tensors (torch.strided) are supported")
        if tensor.device.type != "cpu":
            fail(f"{use} is on {tensor.device}; only tensors in host memory (cpu) are supported")
        self.tensor = tensor
        packed = tensor.resolve_conj().resolve_neg() if fill else tensor
        if not packed.is_contiguous():
            packed = packed.contiguous() if fill else torch.empty_like(packed, memory_format=torch.contiguous_format)
        self.packed = packed
        plain = torch.view_as_real(packed) if packed.is_complex() else packed
        self.dtype = _DTYPES.get(plain.dtype, "byte")
        self.memory: Memory = (packed.data_ptr(), packed.numel() * packed.element_size())

    def parts(self, bytes_of_each: Sequence[int]) -> list[Memory]:
        start, found = self.memory[0], []
        for size in bytes_of_each:
            found.append((start, size))
            start += size
        return found

    def finish(self) -> list[Finish]:
        if self.packed is self.tensor:
            return []
        return [self._unpack]

    def _unpack(self) -> None:
        self.tensor.copy_(self.packed)


def op(opts: Any, tensor: torch.Tensor) -> tuple[str, Any]:
    """Returns the name of the reduction, and a factor for own values."""
    chosen = getattr(opts, "reduceOp", ReduceOp.SUM)
    kind = getattr(chosen, "op", chosen)
    name = _OPS.get(kind)
    if name is None:
        fail(f"the reduction {kind} is not supported; supported are {', '.join(sorted(set(_OPS.values())))}")
    if tensor.dtype.is_floating_point and tensor.element_size() == 1:
        fail(f"{tensor.dtype} is moved only; the reduction {name} needs a wider type, such as bfloat16 or float32")
    if tensor.is_complex() and name not in ("sum", "avg"):
        fail(f"the reduction {name} has no meaning for {tensor.dtype}; sum and avg have")
    return name, chosen.factor if kind == ReduceOp.RedOpType.PREMUL_SUM else None


def same_types(call: str, tensors: Sequence[torch.Tensor]) -> None:
    types = sorted({str(tensor.dtype) for tensor in tensors})
    if len(types) > 1:
        fail(f"{call}: tensors of {' and '.join(types)}; all must have one type")
