"""Taking a library out of a program, on programs of a few hundred bytes.

That what comes out of a real one runs is shown by tests/integration/containers/test_monitor_program.py.
"""

import contextlib
import struct
from collections.abc import Iterator

import pytest

from husk.runtime.elf import UnfitProgramError, without

LITTLE, BIG = "<", ">"
GLIB, JOURNAL, C = "libglib.so.0", "libjournal.so.0", "libc.so.6"
# The symbols that a program takes from each library, with the version that it wants of them.
WANTS = {
    GLIB: {"g_free": ""},
    JOURNAL: {"journal_send": "JOURNAL_1", "journal_print": "JOURNAL_2"},
    C: {"read": "C_1", "memcpy": "C_2"},
}
HEADER, SECTION, SYMBOL, GLOBAL = 64, "IIQQQQIIQQ", "IBBHQQ", 1 << 4
DYNAMIC_AT = 0x1000


def program(wants: dict[str, dict[str, str]] = WANTS, order: str = LITTLE, defined: str = "") -> bytes:
    """A program with nothing but tables; with one symbol that it has itself, perhaps."""
    strings = bytearray(b"\0")

    def text(word: str) -> int:
        strings.extend(word.encode() + b"\0")
        return len(strings) - len(word) - 1

    libraries = {library: text(library) for library in wants}
    versions = {version: number for number, version in enumerate(_versions(wants), 2)}
    symbols, numbers = struct.pack(order + SYMBOL, 0, 0, 0, 0, 0, 0), struct.pack(order + "H", 0)
    for symbol, version in [pair for taken in wants.values() for pair in taken.items()]:
        symbols += struct.pack(order + SYMBOL, text(symbol), GLOBAL | 2, 0, 7 if symbol == defined else 0, 0, 0)
        numbers += struct.pack(order + "H", versions.get(version, 1))
    versioned = [library for library, taken in wants.items() if any(taken.values())]
    needs = b""
    for library in versioned:
        named = sorted(set(wants[library].values()))
        distance = 0 if library == versioned[-1] else 16 + 16 * len(named)
        needs += struct.pack(order + "HHIII", 1, len(named), libraries[library], 16, distance)
        for version in named:
            more = 0 if version == named[-1] else 16
            needs += struct.pack(order + "IHHII", 0, 0, versions[version], text(version), more)
    entries = [(1, name) for name in libraries.values()]
    entries += [(0x6FFFFFFE, DYNAMIC_AT), (0x6FFFFFFF, len(versioned)), (0, 0)]
    dynamic = b"".join(struct.pack(order + "QQ", *entry) for entry in entries)
    parts = [(3, bytes(strings)), (6, dynamic), (11, symbols), (0x6FFFFFFF, numbers), (0x6FFFFFFE, needs)]
    body, headers = b"", b""
    for kind, part in parts:
        headers += struct.pack(order + SECTION, 0, kind, 0, 0, HEADER + len(body), len(part), 0, 0, 0, 0)
        body += part
    head = b"\x7fELF" + bytes([2, 1 if order == LITTLE else 2])
    head = head.ljust(40, b"\0") + struct.pack(order + "Q", HEADER + len(body))
    head = head.ljust(60, b"\0") + struct.pack(order + "H", len(parts))
    return head.ljust(HEADER, b"\0") + body + headers


def _versions(wants: dict[str, dict[str, str]]) -> Iterator[str]:
    return (version for taken in wants.values() for version in taken.values() if version)


class Seen:
    """The view of a dynamic linker."""

    def __init__(self, data: bytes, order: str = LITTLE) -> None:
        self._data, self._order = data, order
        [headers], [count] = self._at("Q", 40), self._at("H", 60)
        sections = [self._at(SECTION, headers + 64 * number) for number in range(count)]
        self._place = {section[1]: section[4] for section in sections}
        size = {section[1]: section[5] for section in sections}
        dynamic = [self._at("QQ", self._place[6] + at) for at in range(0, size[6], 16)]
        values = dict((tag, value) for tag, value in dynamic)
        self.libraries = [self._text(name) for tag, name in dynamic if tag == 1]
        chain = self._place[0x6FFFFFFE] + values[0x6FFFFFFE] - DYNAMIC_AT
        self.needs = [library for library, _ in self._chain(chain)]
        self.needs_count = values[0x6FFFFFFF]
        named = {number: name for _, versions in self._chain(chain) for number, name in versions}
        self.symbols = {}
        for number in range(1, size[11] // 24):
            name, info, _, _, _, _ = self._at(SYMBOL, self._place[11] + 24 * number)
            [version] = self._at("H", self._place[0x6FFFFFFF] + 2 * number)
            self.symbols[self._text(name)] = ("weak" if info >> 4 == 2 else "global", named.get(version, version))

    def _chain(self, at: int) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        while True:
            _, count, library, _, distance = self._at("HHIII", at)
            found = [self._at("IHHII", at + 16 + 16 * number) for number in range(count)]
            yield self._text(library), [(number, self._text(name)) for _, _, number, name, _ in found]
            if distance == 0:
                return
            at += distance

    def _at(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + form, self._data, at)

    def _text(self, offset: int) -> str:
        start = self._place[3] + offset
        return self._data[start : self._data.index(0, start)].decode()


def cut(data: bytes) -> bytes:
    return without(data, JOURNAL, "journal_")


@pytest.mark.parametrize("order", [LITTLE, BIG])
@pytest.mark.parametrize("libraries", [(GLIB, JOURNAL, C), (JOURNAL, C, GLIB), (C, GLIB, JOURNAL)])
def test_a_library_is_no_longer_wanted(libraries: tuple[str, ...], order: str) -> None:
    whole = program({library: WANTS[library] for library in libraries}, order)
    before, after = Seen(whole, order), Seen(cut(whole), order)
    assert JOURNAL in before.libraries and before.symbols["journal_send"] == ("global", "JOURNAL_1")
    assert set(after.libraries) == {GLIB, C}
    assert after.needs == [C] and after.needs_count == 1
    kept = {name: seen for name, seen in before.symbols.items() if not name.startswith("journal_")}
    assert after.symbols == {**kept, "journal_send": ("weak", 1), "journal_print": ("weak", 1)}


def test_a_library_between_others_is_taken_out_of_their_chain() -> None:
    wants = {C: WANTS[C], JOURNAL: WANTS[JOURNAL], GLIB: {"g_free": "GLIB_2"}}
    after = Seen(cut(program(wants)))
    assert after.needs == [C, GLIB] and after.needs_count == 2
    assert after.symbols["g_free"] == ("global", "GLIB_2") and after.symbols["memcpy"] == ("global", "C_2")


def test_no_byte_moves() -> None:
    whole = program()
    assert len(cut(whole)) == len(whole)


def test_another_symbol_of_the_library_is_needed() -> None:
    wants = {**WANTS, JOURNAL: {"journal_send": "JOURNAL_1", "bus_call": "JOURNAL_1"}}
    with pytest.raises(UnfitProgramError, match="it needs bus_call"):
        cut(program(wants))


def test_data_of_the_library_that_lies_in_the_program_is_needed() -> None:
    with pytest.raises(UnfitProgramError, match="it needs journal_send"):
        cut(program(defined="journal_send"))


@pytest.mark.parametrize(
    "wants",
    [
        {GLIB: WANTS[GLIB], C: WANTS[C]},
        {JOURNAL: WANTS[JOURNAL], GLIB: WANTS[GLIB]},
        {JOURNAL: {"journal_send": ""}, C: WANTS[C]},
    ],
    ids=["not linked with it", "nobody else has versions", "its symbols have no version"],
)
def test_a_program_of_another_form(wants: dict[str, dict[str, str]]) -> None:
    with pytest.raises(UnfitProgramError):
        cut(program(wants))


@pytest.mark.parametrize("start", [b"", b"#!/bin/sh\nexec conmon", b"\x7fELF", b"\x7fELF\1\1", b"\x7fELF\2\3"])
def test_what_is_no_such_program(start: bytes) -> None:
    with pytest.raises(UnfitProgramError):
        cut(start)
    with pytest.raises(UnfitProgramError):
        cut(start.ljust(100, b"\0"))


def test_a_program_that_is_cut_off_anywhere() -> None:
    whole = program()
    for length in range(len(whole)):
        with pytest.raises(UnfitProgramError):
            cut(whole[:length])


def test_a_damaged_program_is_refused_or_has_its_length() -> None:
    whole = program()
    for at in range(len(whole)):
        for value in (0, 0xFF):
            damaged = whole[:at] + bytes([value]) + whole[at + 1 :]
            with contextlib.suppress(UnfitProgramError):
                assert len(cut(damaged)) == len(whole)
