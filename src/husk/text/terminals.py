"""Texts of strangers as a terminal shows them and does not obey them. Pure."""

# What is obeyed: control characters, and those that turn the order of the letters on a line.
_TURNS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0))
# Bytes that are no text are told so, too (`surrogateescape`): a terminal may take 0x9b for the begin of a sequence.
_BYTES = range(0x80, 0x100)
# Halves of letters, which JSON may have: they are no text, and cannot be written.
_HALVES = range(0xD800, 0xE000)
_SHOWN = {
    **{half: f"\\u{half:04x}" for half in _HALVES},
    **{sign: f"\\x{sign:02x}" for sign in _CONTROLS},
    **{0xDC00 + byte: f"\\x{byte:02x}" for byte in _BYTES},
    **{sign: f"\\u{sign:04x}" for sign in _TURNS},
}
_SHOWN_IN_LINES = {sign: shown for sign, shown in _SHOWN.items() if chr(sign) not in "\n\t"}
_SHOWN_IN_LINE = {**_SHOWN, ord("\n"): "\\n", ord("\t"): "\t"}
# What `json` leaves as it is, where it leaves letters as they are.
_IN_JSON = {sign: f"\\u{sign:04x}" for sign in (*range(0x7F, 0xA0), *_HALVES, *_TURNS)}
# What YAML takes for the end of a line, or does not take at all: a half of a letter has no word there.
_IN_YAML = {
    **{sign: f"\\u{sign:04x}" for sign in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF, *_TURNS)},
    **dict.fromkeys(_HALVES, "\ufffd"),
}


def visible(text: str) -> str:
    """A text that a terminal shows and does not obey: names, labels and output may have sequences in them that write
    elsewhere, rename the window or type something. Lines stay lines."""
    return text.translate(_SHOWN_IN_LINES)


def in_line(text: str) -> str:
    """The same for a part of a line, which cannot begin another one."""
    return text.translate(_SHOWN_IN_LINE)


def indented(trace: str) -> str:
    """The same for a traceback in a log: a line of a log begins with its time, and errors' messages have any lines."""
    return "\n".join(f"  {line}" for line in visible(trace).rstrip("\n").split("\n"))


def coloured(text: str) -> str:
    """The same for a line whose colours are wanted."""
    pieces = text.split("\x1b[")
    found = [visible(pieces[0])]
    for piece in pieces[1:]:
        codes, end, rest = piece.partition("m")
        colour = bool(end) and all((sign.isascii() and sign.isdigit()) or sign in ";:" for sign in codes)
        found.append(f"\x1b[{codes}m{visible(rest)}" if colour else visible(f"\x1b[{piece}"))
    return "".join(found)


def json_text(document: str) -> str:
    """A JSON document as `json` writes it, with nothing in it that a terminal obeys, and nothing that is no text."""
    return document.translate(_IN_JSON)


def yaml_text(document: str) -> str:
    """A value as `json` writes it, which YAML reads as the same, too."""
    return document.translate(_IN_YAML)
