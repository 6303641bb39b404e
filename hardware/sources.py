"""Files of hardware/laps that a module needs."""

from __future__ import annotations

import re
from pathlib import Path

LAPS = Path(__file__).resolve().parent / "laps"


def needed(top: str) -> list[Path]:
    """The files of a module and of all that it has in it, by name."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(LAPS.glob("*.sv"))}
    homes = {name: path for path, text in texts.items() for name in re.findall(r"^module (\w+)", text, re.MULTILINE)}
    if top not in homes:
        raise SystemExit(f"no module {top} in {LAPS}; there are: {', '.join(sorted(homes))}")
    found = {homes[top]}
    ahead = [homes[top]]
    while ahead:
        path = ahead.pop()
        code = re.sub(r"//.*", "", texts[path])
        more = {homes[name] for name in re.findall(r"\b(laps_\w+)\b", code) if name in homes} - found
        found |= more
        ahead += more
    return sorted(found)
