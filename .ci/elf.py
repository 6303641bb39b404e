"""What an ELF file asks of the system on which it is loaded. 64 bits, little-endian: all that is built here."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

MACHINES = {62: "x86_64", 183: "aarch64"}
NEEDED, RPATH, RUNPATH = 1, 15, 29
VERNEED, DYNSYM, DYNAMIC = 0x6FFFFFFE, 11, 6


@dataclass
class Elf:
    """A library or program."""

    machine: str
    needed: list[str] = field(default_factory=list)
    search_paths: list[str] = field(default_factory=list)
    # The versions of symbols that it asks for, by library.
    versions: dict[str, set[str]] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    sections: set[str] = field(default_factory=set)

    def glibc(self) -> tuple[int, ...]:
        """The oldest C library that has all that the file asks for; () if it asks for nothing."""
        names = [name for versions in self.versions.values() for name in versions]
        found = [re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", name) for name in names]
        return max((numbers(match[1]) for match in found if match), default=())


def numbers(version: str) -> tuple[int, ...]:
    """A version in an order of numbers."""
    return tuple(int(part) for part in version.split("."))


def read(data: bytes) -> Elf:
    """Reads a file.

    Raises:
        ValueError: The file is none, or of another kind of machine.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bits, little-endian")
    (machine,) = struct.unpack_from("<H", data, 18)
    elf = Elf(MACHINES.get(machine, f"machine {machine}"))
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<HHH", data, 58)
    # name, type, flags, address, offset, size, link, info, alignment, entry
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + index * size) for index in range(count)]
    for header in headers:
        elf.sections.add(_text(data, headers[names_at][4] + header[0]))
        strings = headers[header[6]][4] if header[6] < count else 0
        if header[1] == DYNAMIC:
            _dynamic(elf, data, header, strings)
        elif header[1] == VERNEED:
            _versions(elf, data, header, strings)
        elif header[1] == DYNSYM:
            _symbols(elf, data, header, strings)
    return elf


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _dynamic(elf: Elf, data: bytes, header: tuple[int, ...], strings: int) -> None:
    for at in range(header[4], header[4] + header[5], 16):
        tag, value = struct.unpack_from("<QQ", data, at)
        if tag == NEEDED:
            elf.needed.append(_text(data, strings + value))
        elif tag in (RPATH, RUNPATH):
            elf.search_paths.append(_text(data, strings + value))


def _versions(elf: Elf, data: bytes, header: tuple[int, ...], strings: int) -> None:
    at = header[4]
    for _ in range(header[7]):
        _, count, library, first, following = struct.unpack_from("<HHIII", data, at)
        versions = elf.versions.setdefault(_text(data, strings + library), set())
        entry = at + first
        for _ in range(count):
            _, _, _, name, after = struct.unpack_from("<IHHII", data, entry)
            versions.add(_text(data, strings + name))
            entry += after
        at += following


def _symbols(elf: Elf, data: bytes, header: tuple[int, ...], strings: int) -> None:
    for at in range(header[4], header[4] + header[5], 24):
        name, _, _, section = struct.unpack_from("<IBBH", data, at)
        if name and section:
            elf.exported.add(_text(data, strings + name))
