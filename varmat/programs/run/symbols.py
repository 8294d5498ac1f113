"""Names that an object file takes from elsewhere, in the three formats of object files.

LLVM's loader gives the address 0 to a name that it does not find, and a call of it ends the
process. The functions that are declared are not all, because LLVM also calls some unasked: for a
fused multiplication without an instruction, or for a large frame on Windows.
"""

from __future__ import annotations

import struct
from typing import Literal

import numpy as np

_ELF = np.dtype(
    [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("rest", "u8", 2)]
)
_MACH_O = np.dtype([("name", "u4"), ("kind", "u1"), ("section", "u1"), ("rest", "V10")])
_COFF = np.dtype(
    [("name", "V8"), ("value", "u4"), ("section", "i2"), ("type", "u2"), ("class", "u1"),
     ("further", "u1")]
)  # fmt: skip
_SYMBOL_TABLE = 2  # its number in ELF and in Mach-O
_EXTERNAL = 2  # the class of names that other files see, in COFF
# The loader makes two tables itself; the third name says that there are floats, and is not used.
_NOT_CALLED = {"_GLOBAL_OFFSET_TABLE_", ".TOC.", "_fltused"}


def undefined(code: bytes) -> set[str]:
    """Return the names that an object file uses, and does not define."""
    if code[:4] == b"\x7fELF":
        result = _of_elf(code)
    elif code[:4] == b"\xcf\xfa\xed\xfe":
        result = _of_mach_o(code)
    else:
        result = _of_coff(code)
    return result - _NOT_CALLED


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(0, at)].decode()


def _of_elf(code: bytes) -> set[str]:
    order: Literal["<", ">"] = "<" if code[5] == 1 else ">"
    (at,) = struct.unpack_from(f"{order}Q", code, 0x28)
    size, count = struct.unpack_from(f"{order}HH", code, 0x3A)
    # For each section: type, offset, bytes, and the section that it refers to.
    sections = [struct.unpack_from(f"{order}4xI16xQQI", code, at + i * size) for i in range(count)]
    result: set[str] = set()
    for kind, offset, length, link in sections:
        if kind == _SYMBOL_TABLE:
            table = np.frombuffer(code[offset : offset + length], _ELF.newbyteorder(order))
            names = table["name"][(table["section"] == 0) & (table["name"] != 0)].tolist()
            result.update(_text(code, sections[link][1] + name) for name in names)
    return result


def _of_mach_o(code: bytes) -> set[str]:
    (count,), at = struct.unpack_from("<I", code, 16), 32
    result: set[str] = set()
    for _ in range(count):
        command, size = struct.unpack_from("<II", code, at)
        if command == _SYMBOL_TABLE:
            offset, length, texts = struct.unpack_from("<III", code, at + 8)
            table = np.frombuffer(code, _MACH_O, length, offset)
            # External names, of no section.
            names = table["name"][(table["kind"] & 0x0F) == 1].tolist()
            # All names have an underscore before the name in C.
            result.update(_text(code, texts + name).removeprefix("_") for name in names)
        at += size
    return result


def _of_coff(code: bytes) -> set[str]:
    offset, count = struct.unpack_from("<II", code, 8)
    table = np.frombuffer(code, _COFF, count, offset)
    result, i = set(), 0
    while i < count:
        row = table[i]
        if row["class"] == _EXTERNAL and row["section"] == 0 and row["value"] == 0:
            name = row["name"].tobytes()
            zero, place = struct.unpack("<II", name)
            # Long names follow the table.
            texts = offset + count * _COFF.itemsize
            result.add(name.rstrip(b"\0").decode() if zero else _text(code, texts + place))
        i += 1 + int(row["further"])
    return result
