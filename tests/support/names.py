"""Names that a test's own DNS knows, one answer after the other: the last one stays.

names = answer_names(monkeypatch, {"registry.test": [["127.0.0.1"], ["127.0.0.1", ELSEWHERE]]})

Nothing leaves the machine: an address that is no loopback is `ELSEWHERE`, which connects to the machine itself.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence

import pytest

ELSEWHERE = "0.0.0.0"


class Names:
    """The answers that are left, and the names that were asked for."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._left = {name: [*given] for name, given in answers.items()}
        self.asked: list[str] = []

    def answer(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        left = self._left.get(name)
        if not left:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return left.pop(0) if len(left) > 1 else left[0]


def answer_names(monkeypatch: pytest.MonkeyPatch, answers: Mapping[str, Sequence[Sequence[str]]]) -> Names:
    names, honest = Names(answers), asyncio.BaseEventLoop.getaddrinfo

    async def getaddrinfo(loop, host, port, **more):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            found = names.answer(host)
        else:
            return await honest(loop, host, port, **more)
        return [
            (
                socket.AF_INET6 if ":" in one else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (one, port or 0, 0, 0) if ":" in one else (one, port or 0),
            )
            for one in found
        ]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return names
