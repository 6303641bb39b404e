"""Units of axes: from those that columns are named by to those that people read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Values are divided by `divisor` and have `unit` then."""

    divisor: float
    unit: str

    @property
    def suffix(self) -> str:
        """The unit in the label of an axis; empty without a unit."""
        return f" ({self.unit})" if self.unit else ""


# By the end of a column's name: units, the largest that the largest value reaches is taken.
_UNITS = {
    "_ns": ((1, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")),
    "_bytes": ((1, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")),
    "_bps": ((1, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")),
    "_packets": ((1, "packets"),),
    "_count": ((1, ""),),
    "_ratio": ((1, ""),),
}
_WORDS = {
    "fct": "Flow completion time",
    "ideal_fct": "Completion time on an idle network",
    "slowdown": "Slowdown (completion time over that on an idle network)",
    "goodput": "Goodput",
    "queue": "Queue",
    "ooo": "Packets out of order",
    "cnp": "Congestion notifications",
}


def _ending(column: str) -> str:
    return next((ending for ending in _UNITS if column.endswith(ending)), "")


def scale_for(column: str, largest: float) -> Scale:
    """The unit for a column with this largest value."""
    units = _UNITS.get(_ending(column), ((1, ""),))
    reached = [unit for unit in units if largest >= unit[0]]
    return Scale(*(reached or units[:1])[-1])


def label_of(column: str) -> str:
    """What a column shows, without its unit."""
    name = column.removesuffix(_ending(column))
    return _WORDS.get(name, name.replace("_", " ").capitalize())
