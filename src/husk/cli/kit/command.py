"""Commands that read their line as docker's client does.

A truth may be given with its value (`--rm=false`), a letter with an equals sign (`-e=A=1`); what stands behind the
first word that is no flag belongs to the container, where the command starts one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class Flag(click.Option):
    """A truth: `--rm`, `--rm=true`, `--rm=false`."""

    def __init__(self, declarations: Sequence[str], **settings: Any) -> None:
        self.long = next(each for each in declarations if each.startswith("--"))
        self.denial = f"{self.long}:false"  # what `--rm=false` is written out to
        head = [each for each in declarations if each != self.long]
        settings.setdefault("default", False)
        super().__init__([*head, f"{self.long}/{self.denial}"], **settings)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self.hidden:
            return None
        return ", ".join(sorted(self.opts, key=len)), self.help or ""


class HuskCommand(click.Command):
    """A command of ours. `own_words` says that all behind the first word is left as it is."""

    def __init__(
        self,
        name: str | None,
        *,
        own_words: bool = False,
        context_settings: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        context = dict(context_settings or {})
        context.setdefault("allow_interspersed_args", not own_words)
        super().__init__(name, context_settings=context, **settings)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = {name: option for option in self.params if isinstance(option, click.Option) for name in option.opts}
        return super().parse_args(ctx, list(written_out(args, options, ctx.allow_interspersed_args)))


def written_out(arguments: list[str], options: dict[str, click.Option], interspersed: bool) -> Iterator[str]:
    """The same line as click reads it: truths without values, letters without equals signs."""
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            yield argument
            break
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            option = options.get(name)
            if isinstance(option, Flag) and equals:
                yield name if _truth(value, name) else option.denial
                continue
            yield argument
            takes = option is not None and not option.is_flag and not equals
        elif argument.startswith("-") and len(argument) > 1:
            written, takes = _letters(argument, options)
            yield written
        else:
            yield argument
            if not interspersed:
                break
            continue
        if takes and (following := next(left, None)) is not None:
            yield following
    yield from left


def _letters(argument: str, options: dict[str, click.Option]) -> tuple[str, bool]:
    """Letters, and whether the last of them takes the next word."""
    for place, letter in enumerate(argument[1:], 1):
        option = options.get(f"-{letter}")
        if option is None or option.is_flag:
            continue
        rest = argument[place + 1 :]
        return argument[: place + 1] + rest.removeprefix("="), not rest
    return argument, False


def _truth(value: str, name: str) -> bool:
    if value not in (*_TRUE, *_FALSE):
        raise click.BadParameter(f'invalid argument "{value}" for "{name}" flag: expected true or false')
    return value in _TRUE


def flag(*declarations: str, help: str, **settings: Any) -> Callable[[AnyFunction], AnyFunction]:
    return click.option(*declarations, cls=Flag, help=help, **settings)


def many(*declarations: str, help: str, metavar: str = "LIST", **settings: Any) -> Callable[[AnyFunction], AnyFunction]:
    """An option that may be given again and again."""
    return click.option(*declarations, multiple=True, help=help, metavar=metavar, **settings)


def text(
    *declarations: str, help: str, metavar: str = "STRING", **settings: Any
) -> Callable[[AnyFunction], AnyFunction]:
    """An option with a word; empty where it is not given."""
    return click.option(*declarations, **{"default": "", "metavar": metavar, "help": help, **settings})


def number(*declarations: str, help: str, **settings: Any) -> Callable[[AnyFunction], AnyFunction]:
    """An option with a whole number; None where it is not given."""
    return click.option(*declarations, **{"type": int, "metavar": "INT", "help": help, **settings})


# `--json`: the same everywhere.
as_json = flag("--json", "as_json", help="Print JSON: one document, or one line for each event.")
