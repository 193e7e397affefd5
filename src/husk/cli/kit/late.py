"""Functions and commands that are loaded when they are used, by where they are: `module:name`."""

from collections.abc import Callable
from importlib import import_module
from typing import Any


def loaded(place: str) -> Any:
    """Load what is at a place."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def late(place: str) -> Callable[..., Any]:
    """Return a function that is loaded when it is called: help of a command, and a bad line, do without it."""

    def called(*arguments: Any, **named: Any) -> Any:
        return loaded(place)(*arguments, **named)

    return called
