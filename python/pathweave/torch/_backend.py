"""The backend of a group."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend

from pathweave._pathweave import CollectiveGroup
from pathweave.torch._tensor import Finish, Memory, Tensor, copy, fail, op, same_types
from pathweave.torch._work import Process, Work

NAME = "pathweave"
# Seconds that are told apart from for ever.
FOR_EVER = 1e9
# Messages of monitored barriers; tags of users are below.
_BARRIER_TAG = 1 << 62


def seconds_of(timeout: timedelta | None, default: float) -> float:
    seconds = timeout.total_seconds() if timeout is not None else -1
    return seconds if seconds > 0 else default


class PathweaveBackend(Backend):
    """Collectives of a group over pathweave."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store, self._rank, self._ranks = store, rank, size
        self.seconds = seconds_of(timeout, FOR_EVER)
        self._lock = threading.Lock()
        self._group: CollectiveGroup | None = None
        self._ended: str | None = None
        self._batch: list[Work] | None = None
        self._options = Backend.Options(NAME, timeout)
        self._barriers = 0
        store.set(f"pw/{rank}", Process.get().record())

    # -- state

    def _joined(self) -> CollectiveGroup:
        group = self._group
        if group is not None:
            return group
        with self._lock:
            if self._ended:
                fail(self._ended)
            if self._group is None:
                keys = [f"pw/{rank}" for rank in range(self._ranks)]
                try:
                    self._store.wait(keys, timedelta(seconds=min(self.seconds, 1e6)))
                except RuntimeError:
                    absent = [str(rank) for rank, key in enumerate(keys) if not self._store.check([key])]
                    fail(f"ranks {', '.join(absent)} have not joined the group within {self.seconds:.0f} s")
                records = [self._store.get(key).decode() for key in keys]
                try:
                    self._group = Process.get().join(self._rank, records)
                except RuntimeError as error:
                    fail(error)
            return self._group

    def _start(
        self,
        call: str,
        words: tuple[Any, ...],
        tensors: list[Any],
        finishes: Sequence[Finish] = (),
        timeout: timedelta | None = None,
    ) -> Work:
        group = self._joined()
        try:
            ticket = getattr(group, call)(*words)
        except (RuntimeError, ValueError) as error:
            fail(error)
        work = Work([ticket], tensors, list(finishes), seconds_of(timeout, self.seconds))
        if self._batch is not None:
            self._batch.append(work)
        return work

    def _together(self, works: list[Work], tensors: list[Any]) -> Work:
        tickets = [ticket for work in works for ticket in work.tickets]
        finishes = [finish for work in works for finish in work.finishes]
        return Work(tickets, tensors, finishes, max([work.seconds for work in works], default=self.seconds))

    def getBackendName(self) -> str:
        """Name of the backend."""
        return NAME

    def name(self) -> str:
        """Name of the backend."""
        return NAME

    @property
    def options(self) -> Any:
        """Options of the group."""
        return self._options

    supports_coalescing = property(lambda self: True)
    supports_splitting = property(lambda self: False)
    supports_time_estimate = property(lambda self: False)
    _supports_time_estimate = property(lambda self: False)
    supports_shrinking = property(lambda self: False)
    supports_reconfigure = property(lambda self: False)
    supports_window = property(lambda self: False)
    supports_abort_hooks = property(lambda self: False)
    supports_completion_hooks = property(lambda self: False)

    def supports_tensor_alloc(self, device: Any) -> bool:
        """No memory of its own."""
        return False

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the time after which operations fail."""
        self.seconds = seconds_of(timeout, FOR_EVER)

    _set_default_timeout = set_timeout

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return self._group.begun() if self._group is not None else 0

    def abort(self) -> None:
        """Fails the group at all ranks."""
        self._end(f"rank {self._rank} has aborted the group", tell=True)

    def shutdown(self) -> None:
        """Leaves the group."""
        self._end("the group was destroyed", tell=False)

    def _end(self, text: str, tell: bool) -> None:
        with self._lock:
            group, self._group = self._group, None
            self._ended = self._ended or text
        if group is not None and tell:
            group.abort(text)

    def start_coalescing(self) -> None:
        """Begins a batch of operations that end together."""
        self._batch = []

    def end_coalescing(self) -> Work:
        """Ends the batch."""
        works, self._batch = self._batch or [], None
        return self._together(works, [tensor for work in works for tensor in work.tensors])

    # -- reductions

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        """Combines tensors at all ranks."""
        works = []
        for tensor in tensors:
            name, factor = op(opts, tensor)
            if factor is not None:
                tensor.mul_(factor)
            own = Tensor(tensor)
            works.append(
                self._start(
                    "all_reduce",
                    (name, own.dtype, own.memory, own),
                    [tensor],
                    own.finish(),
                    getattr(opts, "timeout", None),
                )
            )
        return works[0] if len(works) == 1 else self._together(works, tensors)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        """Combines several tensors at all ranks."""
        return self.allreduce(tensors, opts)

    def allreduce_sparse(self, tensors: list[torch.Tensor], opts: Any = None) -> NoReturn:
        """Sparse tensors are not supported."""
        fail("sparse tensors are not supported; only dense tensors (torch.strided)")

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        """Combines a tensor at the root."""
        tensor = tensors[0]
        name, factor = op(opts, tensor)
        own = Tensor(tensor if factor is None else tensor * factor)
        finish = own.finish()
        if factor is not None and self._rank == opts.rootRank:
            finish = [*finish, partial(copy, tensor, own.tensor)]
        return self._start(
            "reduce",
            (name, own.dtype, opts.rootRank, own.memory, own),
            [tensor],
            finish if self._rank == opts.rootRank else [],
            opts.timeout,
        )

    def _scattered(self, output: torch.Tensor, inputs: list[Any], parts: list[Memory], opts: Any, name: str) -> Work:
        to = Tensor(output, fill=False, use="output")
        return self._start(
            "reduce_scatter",
            (name, to.dtype, parts, to.memory, (to, inputs)),
            [output],
            to.finish(),
            getattr(opts, "timeout", None),
        )

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Work:
        """Combines lists of tensors, one tensor for each rank."""
        works = []
        for output, blocks in zip(outputs, inputs, strict=True):
            name, factor = op(opts, output)
            packed = [Tensor(block if factor is None else block * factor) for block in blocks]
            same_types("reduce_scatter", [output, *blocks])
            works.append(self._scattered(output, packed, [block.memory for block in packed], opts, name))
        return works[0] if len(works) == 1 else self._together(works, outputs)

    def reduce_scatter_single(self, output: torch.Tensor, blocks: torch.Tensor, opts: Any = None) -> Work:
        """Combines a tensor of blocks, one for each rank."""
        name, factor = op(opts, output)
        same_types("reduce_scatter", [output, blocks])
        own = Tensor(blocks if factor is None else blocks * factor)
        self._fits("reduce_scatter", blocks, output)
        size = own.memory[1] // self._ranks
        return self._scattered(output, [own], own.parts([size] * self._ranks), opts, name)

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """Combines several tensors of blocks."""
        works = [self.reduce_scatter_single(out, own, opts) for out, own in zip(outputs, inputs, strict=True)]
        return self._together(works, outputs)

    def _fits(self, call: str, all_blocks: torch.Tensor, block: torch.Tensor) -> None:
        if all_blocks.numel() != block.numel() * self._ranks:
            fail(
                f"{call}: a tensor of {all_blocks.numel()} elements for {self._ranks} blocks of {block.numel()}; "
                f"it must have {block.numel() * self._ranks}"
            )

    # -- copies

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        """Copies the root's tensor to all ranks."""
        root = getattr(opts, "rootRank", 0)
        works = []
        for tensor in tensors:
            own = Tensor(tensor)
            works.append(
                self._start(
                    "broadcast",
                    (own.dtype, root, own.memory, own),
                    [tensor],
                    own.finish() if root != self._rank else [],
                    getattr(opts, "timeout", None),
                )
            )
        return works[0] if len(works) == 1 else self._together(works, tensors)

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Work:
        """Copies the tensors of all ranks to all."""
        works = []
        for blocks, tensor in zip(outputs, inputs, strict=True):
            same_types("all_gather", [tensor, *blocks])
            own, all_blocks = Tensor(tensor), [Tensor(block, fill=False, use="output") for block in blocks]
            works.append(
                self._start(
                    "all_gather",
                    (own.dtype, own.memory, [block.memory for block in all_blocks], (own, all_blocks)),
                    blocks,
                    [finish for block in all_blocks for finish in block.finish()],
                    getattr(opts, "timeout", None),
                )
            )
        return self._together(works, outputs)

    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """Copies lists of tensors of all ranks to all; `outputs` has a list for each rank."""
        return self.allgather([[of[index] for of in outputs] for index in range(len(inputs))], inputs, opts)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        """Copies the tensors of all ranks into one tensor of all."""
        same_types("all_gather", [output, tensor])
        self._fits("all_gather", output, tensor)
        own, to = Tensor(tensor), Tensor(output, fill=False, use="output")
        parts = to.parts([own.memory[1]] * self._ranks)
        return self._start(
            "all_gather",
            (own.dtype, own.memory, parts, (own, to)),
            [output],
            to.finish(),
            getattr(opts, "timeout", None),
        )

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """Copies several tensors of all ranks to all."""
        works = [self.all_gather_single(out, own, opts) for out, own in zip(outputs, inputs, strict=True)]
        return self._together(works, outputs)

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Work:
        """Sends a tensor to each rank, and receives one from each."""
        same_types("all_to_all", [*inputs, *outputs])
        to, back = [Tensor(one) for one in inputs], [Tensor(one, fill=False, use="output") for one in outputs]
        return self._start(
            "all_to_all",
            (to[0].dtype if to else "uint8", [one.memory for one in to], [one.memory for one in back], (to, back)),
            outputs,
            [finish for one in back for finish in one.finish()],
            getattr(opts, "timeout", None),
        )

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Work:
        """Sends rows of a tensor to each rank, and receives rows from each."""
        same_types("all_to_all", [output, tensor])
        own, to = Tensor(tensor), Tensor(output, fill=False, use="output")
        sent, received = self._rows(tensor, input_splits), self._rows(output, output_splits)
        return self._start(
            "all_to_all",
            (own.dtype, own.parts(sent), to.parts(received), (own, to)),
            [output],
            to.finish(),
            getattr(opts, "timeout", None),
        )

    def _rows(self, tensor: torch.Tensor, splits: Sequence[int]) -> list[int]:
        """Returns the bytes of each rank's rows."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self._ranks:
                fail(f"all_to_all: {rows} rows are not a multiple of {self._ranks} ranks; pass split sizes")
            splits = [rows // self._ranks] * self._ranks
        if len(splits) != self._ranks or sum(splits) != rows:
            fail(f"all_to_all: split sizes {list(splits)} for {rows} rows and {self._ranks} ranks")
        of_row = tensor.numel() // rows * tensor.element_size() if rows else 0
        return [split * of_row for split in splits]

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any) -> Work:
        """Copies the tensors of all ranks to the root."""
        own, blocks = Tensor(inputs[0]), outputs[0] if outputs and self._rank == opts.rootRank else []
        same_types("gather", [inputs[0], *blocks])
        all_blocks = [Tensor(block, fill=False, use="output") for block in blocks]
        return self._start(
            "gather",
            (own.dtype, opts.rootRank, own.memory, [block.memory for block in all_blocks], (own, all_blocks)),
            blocks,
            [finish for block in all_blocks for finish in block.finish()],
            opts.timeout,
        )

    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> Work:
        """Copies the tensors of all ranks into one tensor of the root."""
        is_root = self._rank == opts.rootRank
        own, to = Tensor(tensor), Tensor(output, fill=False, use="output") if is_root else None
        if to is not None:
            self._fits("gather", output, tensor)
        parts = to.parts([own.memory[1]] * self._ranks) if to is not None else []
        return self._start(
            "gather",
            (own.dtype, opts.rootRank, own.memory, parts, (own, to)),
            [output] if is_root else [],
            to.finish() if to is not None else [],
            opts.timeout,
        )

    gather_into_tensor = gather_single

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> Work:
        """Copies tensors of the root to one rank each."""
        to, blocks = (
            Tensor(outputs[0], fill=False, use="output"),
            inputs[0] if inputs and self._rank == opts.rootRank else [],
        )
        same_types("scatter", [outputs[0], *blocks])
        all_blocks = [Tensor(block) for block in blocks]
        return self._start(
            "scatter",
            (to.dtype, opts.rootRank, to.memory, [block.memory for block in all_blocks], (to, all_blocks)),
            outputs,
            to.finish(),
            opts.timeout,
        )

    # -- messages and barriers

    def send(self, tensors: list[torch.Tensor], to: int, tag: int = 0) -> Work:
        """Sends a tensor to a rank."""
        own = Tensor(tensors[0])
        return self._start(
            "send",
            (own.dtype, to, tag, own.memory, own),
            tensors,
        )

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int = 0) -> Work:
        """Receives a tensor from a rank."""
        return self._receive(tensors, source, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Work:
        """Receives a tensor from any rank."""
        return self._receive(tensors, None, tag)

    def _receive(self, tensors: list[torch.Tensor], source: int | None, tag: int) -> Work:
        to = Tensor(tensors[0], fill=False, use="output")
        return self._start(
            "receive",
            (to.dtype, source, tag, to.memory, to),
            tensors,
            to.finish(),
        )

    def barrier(self, opts: Any = None) -> Work:
        """Waits for all ranks."""
        return self._start("barrier", (), [], (), getattr(opts, "timeout", None))

    def monitored_barrier(self, opts: Any = None, wait_all_ranks: bool = False) -> None:
        """Waits for all ranks; rank 0 names those that do not come."""
        # torch passes options with a time, or a time.
        timeout = getattr(opts, "timeout", opts)
        seconds, token = seconds_of(timeout, self.seconds), torch.zeros(1, dtype=torch.uint8)
        tag, self._barriers = _BARRIER_TAG + self._barriers, self._barriers + 1
        if self._rank != 0:
            self.send([token], 0, tag)
            try:
                self.recv([token], 0, tag).wait(timedelta(seconds=seconds))
            except dist.DistBackendError as error:
                fail(f"monitored_barrier: rank 0 has not released rank {self._rank} within {seconds:.1f} s ({error})")
            return
        deadline, absent = time.monotonic() + seconds, []
        works = [(rank, self.recv([token.clone()], rank, tag)) for rank in range(1, self._ranks)]
        for rank, work in works:
            try:
                work.wait(timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
            except dist.DistBackendError:
                absent.append(str(rank))
                if not wait_all_ranks:
                    break
        if absent:
            fail(f"monitored_barrier: ranks {', '.join(absent)} have not come within {seconds:.1f} s")
        for rank in range(1, self._ranks):
            self.send([token], rank, tag)

    # -- older names

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
