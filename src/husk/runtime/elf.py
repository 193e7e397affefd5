"""A program of ELF's form without one of the libraries that it is linked with.

The dynamic linker finds in a program's tables which libraries it wants (`DT_NEEDED`), which versions of their symbols
(`.gnu.version_r`), and for each symbol which of these versions (`.gnu.version`). `without` takes a library out of all
three. The symbols that came from it become weak ones of nobody's: the linker gives them the address 0, so the program
must never call them.

No I/O: bytes in, bytes out. Only what a linker reads is changed, and no byte moves.
"""

import struct
from collections.abc import Iterator

import msgspec

_MAGIC, _CLASS_64, _BYTE_ORDERS = b"\x7fELF", 2, {1: "<", 2: ">"}
# Where the header of a file tells where the headers of its sections are, and how many.
_SECTIONS_AT, _SECTION_COUNT_AT = 40, 60
_SECTION, _DYNAMIC, _SYMBOL = "IIQQQQIIQQ", "QQ", "IBBHQQ"
_NEED, _NEED_VERSION = "HHIII", "IHHII"
# Types of sections.
_IS_DYNAMIC, _IS_SYMBOLS, _IS_NEEDS, _IS_VERSIONS = 6, 11, 0x6FFFFFFE, 0x6FFFFFFF
# Tags of the dynamic section.
_END, _NEEDED, _NEEDS, _NEEDS_COUNT = 0, 1, 0x6FFFFFFE, 0x6FFFFFFF
_WEAK = 2
_UNDEFINED = 0
# The version of symbols that have none; the highest bit of a version only hides a symbol from others.
_NO_VERSION, _VERSION_BITS = 1, 0x7FFF


class UnfitProgramError(ValueError):
    """The program is not of a form that we know, or it needs the library."""


def without(program: bytes, library: str, unused: str) -> bytes:
    """The program, no longer linked with the library, of which it may call nothing but what begins with `unused`;
    whoever runs it knows that it does not call these either."""
    try:
        return _Tables(program).without(library.encode(), unused.encode())
    except (struct.error, IndexError, KeyError, ValueError, OverflowError) as error:
        raise UnfitProgramError(str(error) or type(error).__name__) from error


class _Section(msgspec.Struct, frozen=True):
    offset: int
    size: int
    link: int


class _Need(msgspec.Struct, frozen=True):
    """A program's entry of what it wants of one library: its place, how far it is to the next (0 behind the last), and
    the numbers that the library's versions have in this program."""

    offset: int
    library: bytes
    distance: int
    versions: frozenset[int]


class _Tables:
    """The tables of a program, to be read and changed."""

    def __init__(self, program: bytes) -> None:
        self._data = bytearray(program)
        if program[:4] != _MAGIC or program[4] != _CLASS_64:
            raise ValueError("not an ELF program of 64 bits")
        self._order = _BYTE_ORDERS[program[5]]
        [start] = self._read("Q", _SECTIONS_AT)
        [count] = self._read("H", _SECTION_COUNT_AT)
        headers = [self._read(_SECTION, start + number * self._size(_SECTION)) for number in range(count)]
        self._sections = {kind: _Section(at, size, link) for _, kind, _, _, at, size, link, *_ in headers}
        self._strings = headers[self._sections[_IS_DYNAMIC].link][4]

    def without(self, library: bytes, unused: bytes) -> bytes:
        versions = self._drop_needs(library)
        self._drop_library(library)
        self._orphan(versions, unused)
        return bytes(self._data)

    def _drop_library(self, library: bytes) -> None:
        """Another library is named twice instead, which changes nothing."""
        needed = {self._string(value): (at, value) for at, tag, value in self._dynamic() if tag == _NEEDED}
        at, _ = needed.pop(library)
        self._write_value(at, min(value for _, value in needed.values()))

    def _drop_needs(self, library: bytes) -> frozenset[int]:
        """Take what is wanted of the library out of the chain of needs; the numbers of its versions."""
        dynamic = {tag: (at, value) for at, tag, value in self._dynamic()}
        count_at, count = dynamic[_NEEDS_COUNT]
        first_at, first = dynamic[_NEEDS]
        needs = list(self._needs())
        [number] = [number for number, need in enumerate(needs) if need.library == library]
        need = needs[number]
        if len(needs) == 1:
            raise ValueError("it needs no other library's versions")
        if number == 0:
            self._write_value(first_at, first + need.distance)
        else:
            before = needs[number - 1]
            version, versions, name, first_version, distance = self._read(_NEED, before.offset)
            behind = distance + need.distance if need.distance else 0
            self._write(_NEED, before.offset, version, versions, name, first_version, behind)
        self._write_value(count_at, count - 1)
        return need.versions

    def _orphan(self, versions: frozenset[int], unused: bytes) -> None:
        """Let the symbols of these versions be nobody's."""
        symbols, table = self._sections[_IS_SYMBOLS], self._sections[_IS_VERSIONS]
        for number in range(table.size // 2):
            version_at = table.offset + number * 2
            if self._read("H", version_at)[0] & _VERSION_BITS not in versions:
                continue
            at = symbols.offset + number * self._size(_SYMBOL)
            name, info, other, where, value, size = self._read(_SYMBOL, at)
            if where != _UNDEFINED or not self._string(name).startswith(unused):
                raise ValueError(f"it needs {self._string(name).decode(errors='replace')}")
            self._write(_SYMBOL, at, name, _WEAK << 4 | info & 15, other, where, value, size)
            self._write("H", version_at, _NO_VERSION)

    def _dynamic(self) -> Iterator[tuple[int, int, int]]:
        """Yield the place, the tag and the value of each entry of the dynamic section, up to its end."""
        section = self._sections[_IS_DYNAMIC]
        for at in range(section.offset, section.offset + section.size, self._size(_DYNAMIC)):
            tag, value = self._read(_DYNAMIC, at)
            if tag == _END:
                return
            yield at, tag, value

    def _needs(self) -> Iterator[_Need]:
        at, distance = self._sections[_IS_NEEDS].offset, 1
        while distance:
            _, _, name, first, distance = self._read(_NEED, at)
            yield _Need(at, self._string(name), distance, frozenset(self._versions(at + first)))
            at += distance

    def _versions(self, at: int) -> Iterator[int]:
        distance = 1
        while distance:
            _, _, number, _, distance = self._read(_NEED_VERSION, at)
            yield number
            at += distance

    def _string(self, offset: int) -> bytes:
        start = self._strings + offset
        return bytes(self._data[start : self._data.index(0, start)])

    def _size(self, form: str) -> int:
        return struct.calcsize(self._order + form)

    def _read(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + form, self._data, at)

    def _write(self, form: str, at: int, *values: int) -> None:
        struct.pack_into(self._order + form, self._data, at, *values)

    def _write_value(self, at: int, value: int) -> None:
        """Give an entry of the dynamic section another value."""
        self._write("Q", at + self._size("Q"), value)
