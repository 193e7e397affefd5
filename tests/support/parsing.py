"""Readers of foreign text, in the process of the test: the daemon has workers for them."""

import importlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from husk.builder.store.workers.parse import Answerer
from husk.builder.store.workers.parser import Parser


class Here:
    """A double of `Parsers`; `open` counts the conversations that are under way."""

    def __init__(self) -> None:
        self.open = 0

    def expect(self, module: str) -> None:
        pass

    @asynccontextmanager
    async def begin(self, module: str) -> AsyncIterator[Parser]:
        self.open += 1
        try:
            yield _Conversation(importlib.import_module(module).Answerer())
        finally:
            self.open -= 1


class _Conversation:
    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    async def ask(self, question: bytes, /) -> AsyncGenerator[bytes, None]:
        for piece in self._answerer.turn(question):
            yield piece
