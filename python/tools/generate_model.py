"""Writes `python/pathweave/model.py`: a class for each table of a scenario file, from the JSON Schema of the engine.

Run: python python/tools/generate_model.py [--check]
"""

from __future__ import annotations

import argparse
import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pathweave

Json = dict[str, Any]

TARGET = Path(__file__).parents[1] / "pathweave" / "model.py"
WIDTH = 120
REFERENCE = "#/$defs/"
# What a definition is called where that is not its name without "Config".
NAMES = {"WorkloadEntry": "Workload", "NamedScheme": "Scheme", "Duration": "Time", "Bytes": "Size"}
ROOT = "ScenarioFile"

HEADER = '''"""Scenarios as typed objects: a class for each table of a scenario file, with its fields and defaults.

>>> from pathweave import model
>>> scenario = model.ScenarioFile(
...     topology=model.StarTopology(hosts=4),
...     workload=[model.PermutationWorkload(size="64KB")],
... )
>>> scenario.checked().name
'scenario'

Quantities are texts with their unit, as in a file: `"1.5us"`, `"100Gbps"`, `"8MB"`. What is None is not said, and has
its default. What the engine finds wrong it tells with the field, in `checked()` and whenever such a scenario is run.

Written by `python/tools/generate_model.py`; a test says when that has to be done anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from ._table import Root, Table
'''


def camel(name: str) -> str:
    """`all-to-all` as `AllToAll`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_ ]", name))


def literal(texts: list[str]) -> str:
    """The type of these texts and no others."""
    return f"Literal[{', '.join(quoted(text) for text in texts)}]"


def quoted(text: str) -> str:
    """As a literal of the language."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def one_line(text: str) -> str:
    """Without breaks."""
    return " ".join(text.split())


class Generator:
    """Of one schema, definition by definition."""

    def __init__(self, schema: Json) -> None:
        self.definitions: dict[str, Json] = schema["$defs"]
        self.schema = schema
        self.classes: list[str] = []
        # After the classes, which they name: the text of each, and its definition.
        self.aliases: dict[str, tuple[str, str]] = {}
        self.names: list[str] = []
        # A scheme is laid over the one it is based on: no field of its tables has to be said.
        elsewhere = self.reached({name: p for name, p in schema["properties"].items() if not name.startswith("scheme")})
        self.loose = self.reached(self.definitions["NamedScheme"]) - elsewhere

    def name_of(self, definition: str) -> str:
        short = definition.removesuffix("Config")
        return NAMES.get(definition, definition if short in self.definitions else short)

    def reached(self, node: Any) -> set[str]:
        """Definitions that are referred to, directly or not; not those of schemes."""
        found: set[str] = set()
        todo = [node]
        while todo:
            match todo.pop():
                case dict() as table:
                    name = str(table.get("$ref", "")).removeprefix(REFERENCE)
                    if name and name not in found and name != "NamedScheme":
                        found.add(name)
                        todo.append(self.definitions[name])
                    todo.extend(table.values())
                case list() as items:
                    todo.extend(items)
        return found

    def module(self) -> str:
        for name, definition in sorted(self.definitions.items()):
            self.define(name, definition)
        self.table(ROOT, "Root", self.schema, required=set(self.schema["required"]))
        names = ",\n    ".join(f'"{name}"' for name in sorted(self.names))
        return f"{HEADER}\n__all__ = [\n    {names},\n]\n\n" + "\n\n".join(self.classes + self.aliases_in_order())

    def aliases_in_order(self) -> list[str]:
        """Texts of the aliases, each after those that it names."""
        left = dict(self.aliases)
        texts = []
        while left:
            ready = next(name for name, (_, value) in left.items() if not left.keys() & set(re.findall(r"\w+", value)))
            texts.append(left.pop(ready)[0])
        return texts

    def define(self, name: str, definition: Json) -> None:
        ours = self.name_of(name)
        branches = definition.get("oneOf") or definition.get("anyOf")
        if definition.get("type") == "string" and not branches:
            return self.alias(ours, "str", definition)
        if not branches:
            return self.table(ours, "Table", definition, self.required(name, definition))
        if name == "NamedScheme":
            names, complete = branches[0]["examples"], branches[-1]
            self.alias("SchemeName", literal(names), branches[0])
            from_ = {"base": {"$ref": f"{REFERENCE}SchemeName", **branches[1]["properties"]["base"]}}
            described = {"description": branches[1]["description"], "properties": from_ | complete["properties"]}
            return self.table(ours, "Table", described, set())
        base = "Table"
        if "properties" in definition:
            base = ours + "Table"
            self.table(base, "Table", definition, set(), public=False)
        # A preset is named by the field `preset`; that it could be a kind is not needed twice.
        branches = [one for one in flat(branches) if one.get("properties", {}).get("kind", {}).get("const") != "preset"]
        choices = [self.choice(name, ours, base, one, definition) for one in branches]
        texts = [text for kind, text in choices if kind == "text"]
        types = [text for kind, text in choices if kind == "type"]
        return self.alias(ours, " | ".join(([literal(texts)] if texts else []) + types), definition)

    def choice(self, name: str, ours: str, base: str, branch: Json, whole: Json) -> tuple[str, str]:
        """An alternative: a text, a type, or a class."""
        if "const" in branch:
            return "text", branch["const"]
        if "enum" in branch:
            return "type", literal(branch["enum"])
        if "$ref" in branch:
            definition = branch["$ref"].removeprefix(REFERENCE)
            names = self.definitions[definition].get("oneOf")
            return "type", literal([one["const"] for one in flat(names)]) if names else self.name_of(definition)
        if "properties" not in branch:
            return "type", self.type_of(branch)
        properties = branch["properties"]
        if "kind" in properties and "const" in properties["kind"]:
            label = properties["kind"]["const"]
        elif "preset" in branch.get("required", []):
            label = "preset"
            branch = branch | {"properties": {key: self.typed(key, p, whole) for key, p in properties.items()}}
        else:
            (label,) = branch["required"]
        title = camel(label) + ours
        self.table(title, base, branch, self.required(name, branch))
        return "type", title

    def typed(self, key: str, property: Json, whole: Json) -> Json:
        """A property of a preset, which may lack the type that it has in the tables the preset is made of."""
        if "type" in property or "$ref" in property:
            return property
        complete = (one["properties"][key] for one in flat(whole["anyOf"]) if key in one.get("properties", {}))
        typed = (one for one in complete if one.keys() & {"type", "$ref", "anyOf"})
        types = list({self.type_of(one): one for one in typed}.values())
        return property | (types[0] if len(types) == 1 else {"anyOf": types})

    def required(self, name: str, table: Json) -> set[str]:
        return set() if name in self.loose else set(table.get("required", []))

    def alias(self, name: str, value: str, definition: Json) -> None:
        self.names.append(name)
        said = [one_line(definition.get("description", ""))]
        for one in flat(definition.get("oneOf") or definition.get("anyOf") or []):
            if "const" in one:
                said.append(f'"{one["const"]}": {one_line(one.get("description", ""))}')
        comment = "\n".join(wrapped("# ", "#   ", text) for text in said if text)
        self.aliases[name] = (f"{comment}\n{name}: TypeAlias = {value}\n", value)

    def table(self, name: str, base: str, table: Json, required: set[str], public: bool = True) -> None:
        if public:
            self.names.append(name)
        properties = {key: p for key, p in table["properties"].items() if key != "kind"}
        kind = table["properties"].get("kind", {}).get("const")
        lines, fields = [], []
        for key, property in sorted(properties.items(), key=lambda item: item[0] not in required):
            field = key + "_" if keyword.iskeyword(key) else key
            help = one_line(self.help(property))
            default = self.default(property)
            if key not in required and default is not None and "efault" not in help:
                help = f"{help} Default {default}.".strip()
            if help:
                lines.append(wrapped("        ", "            ", f"{field}: {help}"))
            wanted = self.type_of(property)
            fields.append(f"    {field}: {wanted}" if key in required else f"    {field}: {wanted} | None = None")
        doc = wrapped("    ", "    ", one_line(table.get("description", "")), first='    """')
        doc += "\n\n    Args:\n" + "\n".join(lines) if lines else ""
        doc += '\n    """' if "\n" in doc else '"""'
        tag = f'\n    kind: ClassVar[str | None] = "{kind}"' if kind else ""
        body = "\n" + "\n".join(fields) if fields else ""
        self.classes.append(f"@dataclass(kw_only=True, repr=False)\nclass {name}({base}):\n{doc}\n{tag}{body}\n")

    def help(self, property: Json) -> str:
        if "description" in property:
            return str(property["description"])
        reference = property.get("$ref", "").removeprefix(REFERENCE)
        return str(self.definitions[reference].get("description", "")) if reference else ""

    def default(self, property: Json) -> str | None:
        match property.get("default"):
            case None | dict() | list():
                return None
            case bool() as truth:
                return str(truth)
            case str() as text:
                return quoted(text)
            case number:
                return str(number)

    def type_of(self, property: Json) -> str:
        if "$ref" in property:
            name = self.name_of(property["$ref"].removeprefix(REFERENCE))
            # A scheme of one's own has a name that nobody lists.
            return {"Scheme": "SchemeName | str | Scheme", "SchemeName": "SchemeName | str"}.get(name, name)
        if "anyOf" in property:
            return " | ".join(self.type_of(one) for one in property["anyOf"] if one.get("type") != "null")
        if "enum" in property:
            return literal(property["enum"])
        match [one for one in listed(property["type"]) if one != "null"]:
            case ["array"]:
                return f"list[{self.type_of(property['items'])}]"
            case ["object"]:
                return f"dict[str, {self.type_of(property['additionalProperties'])}]"
            case [simple]:
                return {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}[simple]
        raise ValueError(f"no type for {property}")


def flat(branches: list[Json]) -> list[Json]:
    """Alternatives within alternatives, side by side."""
    return [inner for one in branches for inner in (flat(one["oneOf"]) if "oneOf" in one else [one])]


def listed(one: Any) -> list[Any]:
    """One or several as several."""
    return one if isinstance(one, list) else [one]


def wrapped(indent: str, further: str, text: str, first: str | None = None) -> str:
    """Lines of a docstring or comment, the later ones with another indent."""
    text = text.replace("\\", "\\\\")
    return textwrap.fill(text, WIDTH, initial_indent=first or indent, subsequent_indent=further, break_on_hyphens=False)


def formatted(text: str) -> str:
    """As the formatter leaves it, so that it has nothing to say of the file."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Writes the file, or checks it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="say whether the file is current, and write nothing")
    check = parser.parse_args().check
    text = formatted(Generator(pathweave.schema()).module())
    if check:
        return 0 if TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
