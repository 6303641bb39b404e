"""Operations in progress, and the device that carries them."""

from __future__ import annotations

import atexit
import os
import threading
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from pathweave._pathweave import CollectiveProcess, CollectiveQueue, CollectiveTicket
from pathweave.torch._tensor import Finish, fail


class Process:
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
                    fail(error)
                atexit.register(cls.close, os.getpid())
                os.register_at_fork(after_in_child=cls.forked)
            return cls.device

    @classmethod
    def close(cls, process: int) -> None:
        device, cls.device = cls.device, None
        if device is not None and os.getpid() == process:
            Futures.stop()
            device.close()

    @classmethod
    def forked(cls) -> None:
        cls.lock, cls.device = threading.Lock(), None
        Futures.lock, Futures.thread = threading.Lock(), None


class Futures:
    """One thread that completes futures, started with the first of them."""

    lock = threading.Lock()
    queue = CollectiveQueue()
    thread: threading.Thread | None = None
    waiting: dict[int, tuple[Work, torch.futures.Future[Any]]]
    next = 1

    @classmethod
    def add(cls, work: Work, future: torch.futures.Future[Any]) -> None:
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


class Work(dist.Work):
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
            fail(error)
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
                Futures.add(self, self.future)
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
