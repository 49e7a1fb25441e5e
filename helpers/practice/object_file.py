"""The sections and symbols of an object file or a library: ELF of 64 bits, as compilers on Linux write it.

Offsets and numbers are those of elf.h of the GNU C Library 2.36 (Elf64_Ehdr, Elf64_Shdr, Elf64_Sym; read 2026-11-26).
"""

import struct
from dataclasses import dataclass
from pathlib import Path

OF_OBJECT, OF_LIBRARY = 2, 11  # types of the tables of symbols
UNDEFINED = 0  # the number of a section
RESOLVER = 10  # the type of a symbol whose function the loader calls


class Unreadable(ValueError):
    """A file is not a 64-bit ELF file of this machine's order of bytes."""


@dataclass(frozen=True)
class Symbol:
    """A name in an object file. `section` is 0 for one that the loader has to find."""

    name: str
    kind: int
    section: int


def read(data: bytes, table: int) -> tuple[list[str], list[Symbol]]:
    """The names of the sections, and the symbols of one of the tables, of an ELF file. Raises Unreadable."""
    try:
        if data[:6] != b"\x7fELF\x02\x01":
            raise Unreadable("not a 64-bit ELF file")
        (start,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
        texts = headers[names_at]
        symbols = [symbol for one in headers if one[1] == table for symbol in _symbols(data, one, headers[one[6]])]
        return [_text(data, texts, one[0]) for one in headers], symbols
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise Unreadable(f"a damaged ELF file ({error})") from error


def _symbols(data: bytes, table: tuple[int, ...], texts: tuple[int, ...]) -> list[Symbol]:
    entries = [struct.unpack_from("<IBBH", data, table[4] + i) for i in range(24, table[5], 24)]
    return [Symbol(_text(data, texts, name), info & 15, section) for name, info, _, section in entries]


def _text(data: bytes, section: tuple[int, ...], at: int) -> str:
    start = section[4] + at
    return data[start : data.index(b"\0", start)].decode()


def exports(library: Path) -> set[str]:
    """The names that a library offers. Raises Unreadable."""
    return {one.name for one in read(library.read_bytes(), OF_LIBRARY)[1] if one.section != UNDEFINED}
