"""The backend `pathweave` of `torch.distributed`, for tensors in host memory.

With torch 2.14 or later and `pip install 'pathweave[torch]'`:

    import torch.distributed as dist
    dist.init_process_group("cpu:pathweave,cuda:nccl")

Memory of tensors belongs to an operation from its call until `wait` returns, or its future is complete.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, ReduceOp

from pathweave._pathweave import CollectiveGroup, CollectiveProcess, CollectiveQueue, CollectiveTicket

NAME = "pathweave"
LEAST_TORCH = (2, 14)

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
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
    )
}
_FOR_EVER = 1e9
# Messages of monitored barriers; tags of users are below.
_BARRIER_TAG = 1 << 62
Memory = tuple[int, int]
Finish = Callable[[], None]


def _copy(to: torch.Tensor, source: torch.Tensor) -> None:
    to.copy_(source)


def _fail(text: object) -> NoReturn:
    raise dist.DistBackendError(f"pathweave: {text}")


class _Process:
    """The device of this process, opened by its first group."""

    lock = threading.Lock()
    device: CollectiveProcess | None = None

    @classmethod
    def get(cls) -> CollectiveProcess:
        with cls.lock:
            if cls.device is None:
                try:
                    cls.device = CollectiveProcess()
                except RuntimeError as error:
                    _fail(error)
                atexit.register(cls.close, os.getpid())
            return cls.device

    @classmethod
    def close(cls, process: int) -> None:
        device, cls.device = cls.device, None
        if device is not None and os.getpid() == process:
            _Futures.stop()
            device.close()

    @classmethod
    def forked(cls) -> None:
        cls.lock, cls.device = threading.Lock(), None
        _Futures.lock, _Futures.thread = threading.Lock(), None


class _Futures:
    """One thread that completes futures, started with the first of them."""

    lock = threading.Lock()
    queue = CollectiveQueue()
    thread: threading.Thread | None = None
    waiting: dict[int, tuple[_Work, torch.futures.Future[Any]]]
    next = 1

    @classmethod
    def add(cls, work: _Work, future: torch.futures.Future[Any]) -> None:
        with cls.lock:
            if cls.thread is None:
                cls.queue, cls.waiting = CollectiveQueue(), {}
                cls.thread = threading.Thread(target=cls.run, name="pathweave-futures", daemon=True)
                cls.thread.start()
            number, cls.next = cls.next, cls.next + 1
            cls.waiting[number] = (work, future)
        # The last one to end completes the future: it is looked at whenever one of them ends.
        for ticket in work.tickets:
            cls.queue.add(ticket, number)
        if not work.tickets:
            cls.queue.put(number)

    @classmethod
    def run(cls) -> None:
        while True:
            number = cls.queue.next(0.25)
            if number == 0:
                return
            with cls.lock:
                now = time.monotonic()
                numbers = [number] if number else [key for key, (work, _) in cls.waiting.items() if work.deadline < now]
                due = [(key, cls.waiting[key]) for key in numbers if key in cls.waiting]
                due = [(key, entry) for key, entry in due if not number or entry[0].is_completed()]
                for key, _ in due:
                    del cls.waiting[key]
            for _, (work, future) in due:
                try:
                    work.wait()
                    future.set_result(work.tensors)
                except Exception as error:
                    future.set_exception(error)

    @classmethod
    def stop(cls) -> None:
        with cls.lock:
            thread, cls.thread = cls.thread, None
        if thread is not None and thread is not threading.current_thread():
            cls.queue.put(0)
            thread.join(5)


class _Work(dist.Work):
    """An operation in progress, or several that end together."""

    def __init__(
        self, tickets: list[CollectiveTicket], tensors: list[Any], finishes: list[Finish], seconds: float
    ) -> None:
        super().__init__()
        self.tickets, self.tensors, self.finishes, self.seconds = tickets, tensors, finishes, seconds
        self.deadline = time.monotonic() + seconds
        self.lock = threading.Lock()
        self.future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits for the end; an error names the ranks that it is about."""
        seconds = timeout.total_seconds() if timeout else 0
        try:
            for ticket in self.tickets:
                if seconds > 0:
                    ticket.wait(seconds)
                else:
                    ticket.wait_in_time(self.seconds)
        except RuntimeError as error:
            _fail(error)
        with self.lock:
            finishes, self.finishes = self.finishes, []
            for finish in finishes:
                finish()
        return True

    def get_future(self) -> torch.futures.Future[Any]:
        """Future of the tensors."""
        with self.lock:
            if self.future is None:
                self.future = torch.futures.Future()
                _Futures.add(self, self.future)
            return self.future

    def is_completed(self) -> bool:
        """True once it has ended."""
        return all(ticket.is_done() for ticket in self.tickets)

    def is_success(self) -> bool:
        """True once it has succeeded."""
        return self.is_completed() and not any(ticket.error() for ticket in self.tickets)

    def exception(self) -> Exception | None:
        """Reason of the failure, if it has failed."""
        errors = [text for ticket in self.tickets if (text := ticket.error())]
        return dist.DistBackendError(f"pathweave: {errors[0]}") if errors else None

    def result(self) -> list[Any]:
        """The tensors."""
        return self.tensors

    def source_rank(self) -> int:
        """Rank that a message came from."""
        source = self.tickets[0].source()
        return -1 if source is None else source

    _source_rank = source_rank


class _Tensor:
    """Contiguous memory with the values of a tensor, and the type of its elements."""

    def __init__(self, tensor: torch.Tensor, fill: bool = True, use: str = "input") -> None:
        if tensor.layout != torch.strided:
            _fail(f"{use} is a tensor of layout {tensor.layout}; only dense tensors (torch.strided) are supported")
        if tensor.device.type != "cpu":
            _fail(f"{use} is on {tensor.device}; only tensors in host memory (cpu) are supported")
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


def _op(opts: Any, tensor: torch.Tensor) -> tuple[str, Any]:
    """Returns the name of the reduction, and a factor for own values."""
    chosen = getattr(opts, "reduceOp", ReduceOp.SUM)
    kind = getattr(chosen, "op", chosen)
    name = _OPS.get(kind)
    if name is None:
        _fail(f"the reduction {kind} is not supported; supported are {', '.join(sorted(set(_OPS.values())))}")
    if tensor.is_complex() and name not in ("sum", "avg"):
        _fail(f"the reduction {name} has no meaning for {tensor.dtype}; sum and avg have")
    return name, chosen.factor if kind == ReduceOp.RedOpType.PREMUL_SUM else None


def _seconds(timeout: timedelta | None, default: float) -> float:
    seconds = timeout.total_seconds() if timeout is not None else -1
    return seconds if seconds > 0 else default


class PathweaveBackend(Backend):
    """Collectives of a group over pathweave."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store, self._rank, self._ranks = store, rank, size
        self._seconds = _seconds(timeout, _FOR_EVER)
        self._lock = threading.Lock()
        self._group: CollectiveGroup | None = None
        self._ended: str | None = None
        self._batch: list[_Work] | None = None
        self._options = Backend.Options(NAME, timeout)
        self._barriers = 0
        store.set(f"pw/{rank}", _Process.get().record())

    # -- state

    def _joined(self) -> CollectiveGroup:
        group = self._group
        if group is not None:
            return group
        with self._lock:
            if self._ended:
                _fail(self._ended)
            if self._group is None:
                keys = [f"pw/{rank}" for rank in range(self._ranks)]
                try:
                    self._store.wait(keys, timedelta(seconds=min(self._seconds, 1e6)))
                except RuntimeError:
                    absent = [str(rank) for rank, key in enumerate(keys) if not self._store.check([key])]
                    _fail(f"ranks {', '.join(absent)} have not joined the group within {self._seconds:.0f} s")
                records = [self._store.get(key).decode() for key in keys]
                try:
                    self._group = _Process.get().join(self._rank, records)
                except RuntimeError as error:
                    _fail(error)
            return self._group

    def _start(
        self,
        begin: Callable[[CollectiveGroup], CollectiveTicket],
        tensors: list[Any],
        finishes: Sequence[Finish] = (),
        timeout: timedelta | None = None,
    ) -> _Work:
        group = self._joined()
        try:
            ticket = begin(group)
        except (RuntimeError, ValueError) as error:
            _fail(error)
        work = _Work([ticket], tensors, list(finishes), _seconds(timeout, self._seconds))
        if self._batch is not None:
            self._batch.append(work)
        return work

    def _together(self, works: list[_Work], tensors: list[Any]) -> _Work:
        tickets = [ticket for work in works for ticket in work.tickets]
        finishes = [finish for work in works for finish in work.finishes]
        return _Work(tickets, tensors, finishes, max([work.seconds for work in works], default=self._seconds))

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
        self._seconds = _seconds(timeout, _FOR_EVER)

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

    def end_coalescing(self) -> _Work:
        """Ends the batch."""
        works, self._batch = self._batch or [], None
        return self._together(works, [tensor for work in works for tensor in work.tensors])

    # -- reductions

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> _Work:
        """Combines tensors at all ranks."""
        works = []
        for tensor in tensors:
            name, factor = _op(opts, tensor)
            if factor is not None:
                tensor.mul_(factor)
            own = _Tensor(tensor)
            works.append(
                self._start(
                    lambda group, own=own, name=name: group.all_reduce(name, own.dtype, own.memory, own),
                    [tensor],
                    own.finish(),
                    getattr(opts, "timeout", None),
                )
            )
        return works[0] if len(works) == 1 else self._together(works, tensors)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> _Work:
        """Combines several tensors at all ranks."""
        return self.allreduce(tensors, opts)

    def allreduce_sparse(self, tensors: list[torch.Tensor], opts: Any = None) -> NoReturn:
        """Sparse tensors are not supported."""
        _fail("sparse tensors are not supported; only dense tensors (torch.strided)")

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> _Work:
        """Combines a tensor at the root."""
        tensor = tensors[0]
        name, factor = _op(opts, tensor)
        own = _Tensor(tensor if factor is None else tensor * factor)
        finish = own.finish()
        if factor is not None and self._rank == opts.rootRank:
            finish = [*finish, partial(_copy, tensor, own.tensor)]
        return self._start(
            lambda group: group.reduce(name, own.dtype, opts.rootRank, own.memory, own),
            [tensor],
            finish if self._rank == opts.rootRank else [],
            opts.timeout,
        )

    def _scattered(self, output: torch.Tensor, inputs: list[Any], parts: list[Memory], opts: Any, name: str) -> _Work:
        to = _Tensor(output, fill=False, use="output")
        return self._start(
            lambda group: group.reduce_scatter(name, to.dtype, parts, to.memory, (to, inputs)),
            [output],
            to.finish(),
            getattr(opts, "timeout", None),
        )

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> _Work:
        """Combines lists of tensors, one tensor for each rank."""
        works = []
        for output, blocks in zip(outputs, inputs, strict=True):
            name, factor = _op(opts, output)
            packed = [_Tensor(block if factor is None else block * factor) for block in blocks]
            _same_types("reduce_scatter", [output, *blocks])
            works.append(self._scattered(output, packed, [block.memory for block in packed], opts, name))
        return works[0] if len(works) == 1 else self._together(works, outputs)

    def reduce_scatter_single(self, output: torch.Tensor, blocks: torch.Tensor, opts: Any = None) -> _Work:
        """Combines a tensor of blocks, one for each rank."""
        name, factor = _op(opts, output)
        _same_types("reduce_scatter", [output, blocks])
        own = _Tensor(blocks if factor is None else blocks * factor)
        self._fits("reduce_scatter", blocks, output)
        size = own.memory[1] // self._ranks
        return self._scattered(output, [own], own.parts([size] * self._ranks), opts, name)

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> _Work:
        """Combines several tensors of blocks."""
        works = [self.reduce_scatter_single(out, own, opts) for out, own in zip(outputs, inputs, strict=True)]
        return self._together(works, outputs)

    def _fits(self, call: str, all_blocks: torch.Tensor, block: torch.Tensor) -> None:
        if all_blocks.numel() != block.numel() * self._ranks:
            _fail(
                f"{call}: a tensor of {all_blocks.numel()} elements for {self._ranks} blocks of {block.numel()}; "
                f"it must have {block.numel() * self._ranks}"
            )

    # -- copies

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> _Work:
        """Copies the root's tensor to all ranks."""
        root = getattr(opts, "rootRank", 0)
        works = []
        for tensor in tensors:
            own = _Tensor(tensor)
            works.append(
                self._start(
                    lambda group, own=own: group.broadcast(own.dtype, root, own.memory, own),
                    [tensor],
                    own.finish() if root != self._rank else [],
                    getattr(opts, "timeout", None),
                )
            )
        return works[0] if len(works) == 1 else self._together(works, tensors)

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> _Work:
        """Copies the tensors of all ranks to all."""
        works = []
        for blocks, tensor in zip(outputs, inputs, strict=True):
            _same_types("all_gather", [tensor, *blocks])
            own, all_blocks = _Tensor(tensor), [_Tensor(block, fill=False, use="output") for block in blocks]
            works.append(
                self._start(
                    lambda group, own=own, all_blocks=all_blocks: group.all_gather(
                        own.dtype, own.memory, [block.memory for block in all_blocks], (own, all_blocks)
                    ),
                    blocks,
                    [finish for block in all_blocks for finish in block.finish()],
                    getattr(opts, "timeout", None),
                )
            )
        return self._together(works, outputs)

    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> _Work:
        """Copies lists of tensors of all ranks to all; `outputs` has a list for each rank."""
        return self.allgather([[of[index] for of in outputs] for index in range(len(inputs))], inputs, opts)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> _Work:
        """Copies the tensors of all ranks into one tensor of all."""
        _same_types("all_gather", [output, tensor])
        self._fits("all_gather", output, tensor)
        own, to = _Tensor(tensor), _Tensor(output, fill=False, use="output")
        parts = to.parts([own.memory[1]] * self._ranks)
        return self._start(
            lambda group: group.all_gather(own.dtype, own.memory, parts, (own, to)),
            [output],
            to.finish(),
            getattr(opts, "timeout", None),
        )

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> _Work:
        """Copies several tensors of all ranks to all."""
        works = [self.all_gather_single(out, own, opts) for out, own in zip(outputs, inputs, strict=True)]
        return self._together(works, outputs)

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> _Work:
        """Sends a tensor to each rank, and receives one from each."""
        _same_types("all_to_all", [*inputs, *outputs])
        to, back = [_Tensor(one) for one in inputs], [_Tensor(one, fill=False, use="output") for one in outputs]
        return self._start(
            lambda group: group.all_to_all(
                to[0].dtype if to else "uint8", [one.memory for one in to], [one.memory for one in back], (to, back)
            ),
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
    ) -> _Work:
        """Sends rows of a tensor to each rank, and receives rows from each."""
        _same_types("all_to_all", [output, tensor])
        own, to = _Tensor(tensor), _Tensor(output, fill=False, use="output")
        sent, received = self._rows(tensor, input_splits), self._rows(output, output_splits)
        return self._start(
            lambda group: group.all_to_all(own.dtype, own.parts(sent), to.parts(received), (own, to)),
            [output],
            to.finish(),
            getattr(opts, "timeout", None),
        )

    def _rows(self, tensor: torch.Tensor, splits: Sequence[int]) -> list[int]:
        """Returns the bytes of each rank's rows."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self._ranks:
                _fail(f"all_to_all: {rows} rows are not a multiple of {self._ranks} ranks; pass split sizes")
            splits = [rows // self._ranks] * self._ranks
        if len(splits) != self._ranks or sum(splits) != rows:
            _fail(f"all_to_all: split sizes {list(splits)} for {rows} rows and {self._ranks} ranks")
        of_row = tensor.numel() // rows * tensor.element_size() if rows else 0
        return [split * of_row for split in splits]

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any) -> _Work:
        """Copies the tensors of all ranks to the root."""
        own, blocks = _Tensor(inputs[0]), outputs[0] if outputs and self._rank == opts.rootRank else []
        _same_types("gather", [inputs[0], *blocks])
        all_blocks = [_Tensor(block, fill=False, use="output") for block in blocks]
        return self._start(
            lambda group: group.gather(
                own.dtype, opts.rootRank, own.memory, [block.memory for block in all_blocks], (own, all_blocks)
            ),
            blocks,
            [finish for block in all_blocks for finish in block.finish()],
            opts.timeout,
        )

    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> _Work:
        """Copies the tensors of all ranks into one tensor of the root."""
        is_root = self._rank == opts.rootRank
        own, to = _Tensor(tensor), _Tensor(output, fill=False, use="output") if is_root else None
        if to is not None:
            self._fits("gather", output, tensor)
        parts = to.parts([own.memory[1]] * self._ranks) if to is not None else []
        return self._start(
            lambda group: group.gather(own.dtype, opts.rootRank, own.memory, parts, (own, to)),
            [output] if is_root else [],
            to.finish() if to is not None else [],
            opts.timeout,
        )

    gather_into_tensor = gather_single

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> _Work:
        """Copies tensors of the root to one rank each."""
        to, blocks = (
            _Tensor(outputs[0], fill=False, use="output"),
            inputs[0] if inputs and self._rank == opts.rootRank else [],
        )
        _same_types("scatter", [outputs[0], *blocks])
        all_blocks = [_Tensor(block) for block in blocks]
        return self._start(
            lambda group: group.scatter(
                to.dtype, opts.rootRank, to.memory, [block.memory for block in all_blocks], (to, all_blocks)
            ),
            outputs,
            to.finish(),
            opts.timeout,
        )

    # -- messages and barriers

    def send(self, tensors: list[torch.Tensor], to: int, tag: int = 0) -> _Work:
        """Sends a tensor to a rank."""
        own = _Tensor(tensors[0])
        return self._start(lambda group: group.send(own.dtype, to, tag, own.memory, own), tensors)

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int = 0) -> _Work:
        """Receives a tensor from a rank."""
        return self._receive(tensors, source, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> _Work:
        """Receives a tensor from any rank."""
        return self._receive(tensors, None, tag)

    def _receive(self, tensors: list[torch.Tensor], source: int | None, tag: int) -> _Work:
        to = _Tensor(tensors[0], fill=False, use="output")
        return self._start(lambda group: group.receive(to.dtype, source, tag, to.memory, to), tensors, to.finish())

    def barrier(self, opts: Any = None) -> _Work:
        """Waits for all ranks."""
        return self._start(lambda group: group.barrier(), [], (), getattr(opts, "timeout", None))

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Waits for all ranks; rank 0 names those that do not come."""
        seconds, token = _seconds(timeout, self._seconds), torch.zeros(1, dtype=torch.uint8)
        tag, self._barriers = _BARRIER_TAG + self._barriers, self._barriers + 1
        if self._rank != 0:
            self.send([token], 0, tag)
            try:
                self.recv([token], 0, tag).wait(timedelta(seconds=seconds))
            except dist.DistBackendError as error:
                _fail(f"monitored_barrier: rank 0 has not released rank {self._rank} within {seconds:.1f} s ({error})")
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
            _fail(f"monitored_barrier: ranks {', '.join(absent)} have not come within {seconds:.1f} s")
        for rank in range(1, self._ranks):
            self.send([token], rank, tag)

    # -- older names

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced


def _same_types(call: str, tensors: Sequence[torch.Tensor]) -> None:
    types = sorted({str(tensor.dtype) for tensor in tensors})
    if len(types) > 1:
        _fail(f"{call}: tensors of {' and '.join(types)}; all must have one type")


def _create(opts: Any, options: Any) -> PathweaveBackend:
    return PathweaveBackend(opts.store, opts.group_rank, opts.group_size, opts.timeout)


def register() -> None:
    """Registers the backend, once. torch 2.14 calls this itself when `pathweave` is named."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < LEAST_TORCH:
        least = ".".join(map(str, LEAST_TORCH))
        raise RuntimeError(f"the backend pathweave needs torch {least} or later; this is {torch.__version__}")
    if not hasattr(dist.Backend, NAME.upper()):
        os.register_at_fork(after_in_child=_Process.forked)
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])
