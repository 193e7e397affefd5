"""A group whose commands are loaded when they are used: asking for one does not wait for the others."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name: the module of each with what it is called there, as `module:name`."""

    def __init__(self, name: str | None = None, *, places: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(name, **settings)
        self.places = dict(places or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        found = getattr(import_module(module), name)
        assert isinstance(found, click.Command)
        return found
