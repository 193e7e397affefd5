"""dockerd's command line, read as dockerd reads it: `--icc=false`, `-Dl debug`.

`expanded` brings it into a form that click understands. `plain` reads what is nothing but known flags with their values
itself, for loading click is a twentieth of a daemon's start; all else is left to click, which helps and complains.
"""

from collections.abc import Iterator

from husk.config.keys import BY_FLAG, BY_SHORT, OPTIONS, KeyKind

# A flag that may be given again and again has all its values, another one the last; None where it was not given.
Given = dict[str, str | tuple[str, ...] | None]


def plain(arguments: list[str]) -> Given | None:
    """The values of all flags, or None if there is anything else than flags and their values."""
    values: dict[str, list[str]] = {}
    left = expanded(arguments)
    for argument in left:
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or name not in BY_FLAG or name == "restart":
            return None
        if not equals and (value := next(left, "")) == "":
            return None
        values.setdefault(name, []).append(value)
    return {
        option.flag: tuple(values.get(option.flag, ())) if option.multiple else values.get(option.flag, [None])[-1]
        for option in OPTIONS
        if option.flag and option.flag != "restart"
    }


def expanded(arguments: list[str]) -> Iterator[str]:
    """The same with every option in its long form: a truth with its value, others followed by theirs."""
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            yield from left
        elif argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            option = BY_FLAG.get(name)
            if option is not None and option.kind is KeyKind.TRUTH:
                yield f"--{name}={value if equals else 'true'}"
            elif equals or option is None:
                yield argument
            else:
                yield argument
                yield from _next(left)
        elif argument.startswith("-") and argument not in ("-", "-h", "-v"):
            yield from _letters(argument[1:], left)
        else:
            yield "--version" if argument == "-v" else argument


def _letters(letters: str, left: Iterator[str]) -> Iterator[str]:
    """`-D`, `-Dl debug`, `-H=unix://`: truths may stand before one that takes the rest, or the next word."""
    while letters:
        option = BY_SHORT.get(letters[0])
        if option is None:
            yield f"-{letters}"
            return
        rest = letters[1:]
        if option.kind is not KeyKind.TRUTH:
            yield f"--{option.flag}"
            yield from [rest.removeprefix("=")] if rest else _next(left)
            return
        if rest.startswith("="):
            yield f"--{option.flag}={rest[1:]}"
            return
        yield f"--{option.flag}=true"
        letters = rest


def _next(left: Iterator[str]) -> Iterator[str]:
    for value in left:
        yield value
        return
