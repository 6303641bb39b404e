"""Congestion controls written in Python: to try an idea before it is worth Rust."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ._pathweave import Feedback, Packet, QueuePair

_LIMITS = ("window_bytes", "rate_bps")


def _refuse_misspelt_limit(name: str) -> None:
    """Raises an error for the name of a limit with another case, number or without its underscore.

    The engine would not read it, and nothing would limit.
    """

    def letters(text: str) -> str:
        return text.lower().replace("_", "").replace("s", "")

    for limit in _LIMITS:
        if name != limit and letters(name) == letters(limit):
            raise AttributeError(f'a congestion control has no attribute "{name}"; did you mean "{limit}"?')


class CongestionControl:
    """Limits the packets of one queue pair by a window, a rate, or both. Subclass it, and give the class to `run`.

    >>> class Halving(pw.CongestionControl):
    ...     def __init__(self, queue_pair):
    ...         super().__init__(queue_pair)
    ...         self.window_bytes = 64 * queue_pair.mtu_wire_bytes
    ...     def on_feedback(self, now_ps, feedback):
    ...         if feedback.kind == "ack":
    ...             packet = self.queue_pair.mtu_wire_bytes
    ...             change = -self.window_bytes / 2 if feedback.marked else packet * packet / self.window_bytes
    ...             self.window_bytes = max(packet, self.window_bytes + change)
    >>> pw.run("scenarios/permutation.toml", scheme="rps", control=Halving)

    The engine makes one object for each queue pair and calls it in the order of simulated time, as it calls congestion
    controls written in Rust. It reads `window_bytes` and `rate_bps` after each call. Times are integers, picoseconds
    since the start of the run.

    Use no random numbers, and do not share state between objects (in the class or the module): with several threads no
    run would repeat itself. `check_control` finds most mistakes.
    """

    queue_pair: QueuePair
    """The queue pair: rate of the port, idle round-trip time, size of packets."""
    window_bytes: float | None
    """Largest number of bytes in flight, as counted on the wire, 1 to 1e18; None for no limit. One packet may always
    be in flight."""
    rate_bps: float | None
    """Rate at which packets are paced, bits per second on the wire, 1 to 1e18; None for the rate of the port."""

    def __init__(self, queue_pair: QueuePair) -> None:
        """Called once for each queue pair, when it opens. A subclass that has its own calls this one first."""
        self.queue_pair = queue_pair
        self.window_bytes = None
        self.rate_bps = None

    if not TYPE_CHECKING:  # Checkers of types know the attributes.

        def __setattr__(self, name: str, value: object) -> None:
            if name not in self.__dict__:
                _refuse_misspelt_limit(name)
            object.__setattr__(self, name, value)

    def on_sent(self, now_ps: int, path: int, packet: Packet) -> int | None:
        """A packet left.

        Args:
            now_ps: Simulated time, picoseconds.
            path: The path of the packet.
            packet: The packet; it counts in `inflight_packets` now.

        Returns:
            A number from 0 to 2**32 - 1 that comes back as `feedback.memo`, or None for 0.
        """
        return None

    def on_feedback(self, now_ps: int, feedback: Feedback) -> None:
        """The sender received an acknowledgement, a notification or a loss.

        Args:
            now_ps: Simulated time, picoseconds.
            feedback: The feedback.
        """


ControlLike = Callable[[QueuePair], CongestionControl]
"""A subclass of `CongestionControl`, or another callable that returns one: `functools.partial(Mine, gain=0.5)`."""
