"""A group whose commands are loaded when they are used: asking for one does not wait for the others."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from husk.cli.kit.late import late, loaded

_matches = late("difflib:get_close_matches")


class WordGroup(click.Group):
    """A group that says which of its words was meant, when it knows none that is typed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            ctx.fail(f"No such command {word!r}{near(word, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def near(word: str, words: Iterable[str]) -> str:
    """Say which words look like one, as ` (did you mean ps?)`; nothing where none does."""
    found = _matches(word, list(words), 3, 0.6)
    return f" (did you mean {' or '.join(found)}?)" if found else ""


class LazyGroup(WordGroup):
    """Commands by name: the module of each with what it is called there, as `module:name`, and what help and
    completions say of it. A command of which they say nothing is not shown."""

    def __init__(
        self,
        name: str | None = None,
        *,
        places: Mapping[str, tuple[str, str]],
        **settings: Any,
    ) -> None:
        super().__init__(name, **settings)
        self.places = dict(places)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.places:
            return None
        found = loaded(self.places[cmd_name][0])
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._shown()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=said) for name, said in self._shown() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def _shown(self) -> Iterator[tuple[str, str]]:
        return ((name, said) for name, (_, said) in sorted(self.places.items()) if said)


def words(name: str, help: str, *commands: click.Command) -> WordGroup:
    """Make a group of commands that live in one module."""
    return WordGroup(name, help=help, commands={str(command.name): command for command in commands})
