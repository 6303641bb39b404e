"""Path pickers written in Python: to try an idea before it is worth Rust."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ._pathweave import Feedback, Packet, Path, QueuePair


class Picker(ABC):
    """Chooses the path of each packet of one queue pair. Subclass it, and give the class to `run`.

    >>> class RoundRobin(pw.Picker):
    ...     def pick(self, now_ps, paths, packet):
    ...         return paths[packet.psn % len(paths)]
    >>> pw.run("scenarios/permutation.toml", scheme="rps", picker=RoundRobin)

    The engine makes one object for each queue pair and calls it in the order of simulated time, as it calls pickers
    written in Rust. A path is a number from 0 to `queue_pair.paths - 1`: a source port, or one of a list of explicit
    paths. Times are integers, picoseconds since the start of the run.

    Take random numbers from `self.random`, which has its own seed for each queue pair, the same in every run. Do not
    share state between objects (in the class or the module): results would depend on the order in which queue pairs are
    served, and with several threads no run repeats itself. `check_picker` finds most mistakes.
    """

    queue_pair: QueuePair
    """The queue pair: number of paths, rate of the port, idle round-trip time, size of packets."""
    random: random.Random
    """Random numbers of this queue pair. Only `random()` is sure to be the same in every version of Python."""

    def __init__(self, queue_pair: QueuePair) -> None:
        """Called once for each queue pair, when it opens. A subclass that has its own calls this one first."""
        self.queue_pair = queue_pair
        self.random = random.Random(queue_pair.seed)

    @abstractmethod
    def pick(self, now_ps: int, paths: Sequence[int], packet: Packet) -> int:
        """The path for a packet that may leave now.

        The engine asks once for each packet, so `pick` may change the state of the picker. It asks again for the same
        packet only if another packet left first (a retransmission) or the usable paths changed.

        Args:
            now_ps: Simulated time, picoseconds.
            paths: The usable paths, in rising order, never empty: those that are up, or all if none is.
            packet: The packet.

        Returns:
            One of `paths`.
        """

    def on_sent(self, now_ps: int, path: int, packet: Packet) -> int | None:
        """A packet left on the path picked for it.

        Args:
            now_ps: Simulated time, picoseconds.
            path: The path it took.
            packet: The packet; it counts in `inflight_packets` now.

        Returns:
            A number from 0 to 2**32 - 1 that comes back as `feedback.memo`, or None for 0.
        """
        return None

    # Not abstract: the engine does not call methods that a picker does not define.
    def on_feedback(self, now_ps: int, feedback: Feedback) -> None:  # noqa: B027
        """Feedback on a packet or a path arrived: an acknowledgement, a notification, a loss.

        Args:
            now_ps: Simulated time, picoseconds.
            feedback: The feedback.
        """

    def on_paths(self, now_ps: int, paths: Sequence[Path]) -> None:  # noqa: B027
        """The set of paths changed, or more became known of them.

        Args:
            now_ps: Simulated time, picoseconds.
            paths: All paths, by number: which are up, and rates and delays where the sender knows them.
        """


PickerLike = Callable[[QueuePair], Picker]
"""A subclass of `Picker`, or another callable that returns a picker: `functools.partial(Mine, gain=0.5)`."""
