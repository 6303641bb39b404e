"""What typed scenario objects have in common: they become tables of a scenario file, and tables become them.

The objects are in `pathweave.model`, which is generated.
"""

from __future__ import annotations

import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from ._pathweave import Scenario

_T = typing.TypeVar("_T", bound="Table")
# Types of fields, cached because they are slow to compute.
_known: dict[type, dict[str, Any]] = {}


@dataclass(kw_only=True, repr=False)
class Table:
    """A table of a scenario file. A field that is None is not set and has its default."""

    kind: ClassVar[str | None] = None
    """The field that distinguishes tables of one place, if any."""

    def to_dict(self) -> dict[str, Any]:
        """The table as in a file: only the fields that are set."""
        tag = {} if self.kind is None else {"kind": self.kind}
        said = {_in_file(name): getattr(self, name) for name in _types(type(self))}
        return tag | {name: plain(value) for name, value in said.items() if value is not None}

    def __repr__(self) -> str:
        said = ((name, getattr(self, name)) for name in _types(type(self)))
        inside = ", ".join(f"{name}={value!r}" for name, value in said if value is not None)
        return f"{type(self).__name__}({inside})"


@dataclass(kw_only=True, repr=False)
class Root(Table):
    """A whole scenario."""

    base_dir: str | os.PathLike[str] = field(default="", metadata={"in_file": False})
    """Folder that names of files are relative to; no part of the file."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a scenario file.

        Raises:
            ScenarioError: With every mistake found.
        """
        Scenario.load(path)
        return cls._of(tomllib.loads(Path(path).read_text(encoding="utf-8")), Path(path).parent)

    @classmethod
    def resolved(cls, scenario: Scenario) -> Self:
        """A scenario with every shorthand spelled out and every default filled in."""
        return cls._of(tomllib.loads(scenario.to_toml()), "")

    @classmethod
    def _of(cls, fields: Mapping[str, Any], base_dir: str | os.PathLike[str]) -> Self:
        made = _table(cls, fields)
        made.base_dir = base_dir
        return made

    def checked(self) -> Scenario:
        """The scenario, checked as a file is.

        Raises:
            ScenarioError: With every mistake, each with its field, the allowed values and the nearest valid name.
        """
        return Scenario.from_dict(self.to_dict(), base_dir=self.base_dir)


def plain(value: Any) -> Any:
    """`value` with dicts instead of tables, at any depth."""
    if isinstance(value, Table):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def _in_file(name: str) -> str:
    # A field named as a word of the language has an underscore behind it.
    return name.removesuffix("_")


def _types(table: type[Table]) -> dict[str, Any]:
    """The fields that files have, with their types."""
    if table not in _known:
        hints = typing.get_type_hints(table)
        _known[table] = {one.name: hints[one.name] for one in fields(table) if one.metadata.get("in_file", True)}
    return _known[table]


def _table(table: type[_T], given: Mapping[str, Any]) -> _T:
    names = {_in_file(name): name for name in _types(table)}
    said = {names[key]: _value(_types(table)[names[key]], value) for key, value in given.items() if key != "kind"}
    return table(**said)


def _value(wanted: Any, value: Any) -> Any:
    """Converts `value`, of a checked file, to a field of type `wanted`."""
    choices = _alternatives(wanted)
    if isinstance(value, Mapping):
        for choice in choices:
            if isinstance(choice, type) and issubclass(choice, Table) and _fits(choice, value):
                return _table(choice, value)
        inner = next((typing.get_args(c)[1] for c in choices if typing.get_origin(c) is dict), Any)
        return {name: _value(inner, one) for name, one in value.items()}
    if isinstance(value, list):
        inner = next((typing.get_args(c)[0] for c in choices if typing.get_origin(c) is list), Any)
        return [_value(inner, one) for one in value]
    return value


def _alternatives(wanted: Any) -> list[Any]:
    if typing.get_origin(wanted) in (typing.Union, types.UnionType):
        return [inner for one in typing.get_args(wanted) for inner in _alternatives(one)]
    return [wanted]


def _fits(table: type[Table], given: Mapping[str, Any]) -> bool:
    known = {_in_file(name) for name in _types(table)}
    return given.get("kind") == table.kind and given.keys() <= known | {"kind"}
