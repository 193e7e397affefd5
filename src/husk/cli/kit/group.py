"""A group whose commands are loaded when they are used: asking for one does not wait for the others."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
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
        module, _, name = self.places[cmd_name][0].partition(":")
        found = getattr(import_module(module), name)
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
