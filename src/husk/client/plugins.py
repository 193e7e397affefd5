"""Plugins of an engine. Husk itself has none; other engines that speak the API do."""

from collections.abc import Mapping, Sequence
from typing import Any

from husk.client.calls import Calls
from husk.client.filters import filters_of
from husk.client.thing import Thing


class Plugin(Thing):
    """A plugin of an engine.

    plugin = await engine.plugins.get("vieux/sshfs")
    await plugin.enable()
    """

    @property
    def name(self) -> str:
        return str(self.attrs.get("Name", ""))

    @property
    def enabled(self) -> bool:
        return bool(self.attrs.get("Enabled"))

    @property
    def settings(self) -> dict[str, Any]:
        return dict(self.attrs.get("Settings") or {})

    async def reload(self) -> None:
        """Ask the engine again."""
        self.attrs = await self._calls.get(f"{self._path}/json")

    async def enable(self, timeout: int = 10) -> None:
        """Let it work; give up after so many seconds."""
        await self._calls.post(f"{self._path}/enable", None, {"timeout": timeout})
        await self.reload()

    async def disable(self, *, force: bool = False) -> None:
        """Let it rest; with `force` also while something uses it."""
        await self._calls.post(f"{self._path}/disable", None, {"force": force})
        await self.reload()

    async def configure(self, options: Sequence[str]) -> None:
        """Change its settings: `DEBUG=1`, `key.source=/x`. It must not be enabled."""
        await self._calls.post(f"{self._path}/set", list(options))
        await self.reload()

    async def push(self) -> None:
        """Send it to its registry."""
        await self._calls.post(f"{self._path}/push")

    async def remove(self, *, force: bool = False) -> None:
        """Remove it; with `force` also while it is enabled."""
        await self._calls.delete(self._path, {"force": force})

    @property
    def _path(self) -> str:
        return f"/plugins/{self.name}"


class Plugins:
    """`engine.plugins`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, name: str) -> Plugin:
        """By name or id; NotFound where there is none."""
        return Plugin(self._calls, await self._calls.get(f"/plugins/{name}/json"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Plugin]:
        """All, or those that the filters let through."""
        found = await self._calls.get("/plugins", {"filters": filters_of(filters)})
        return [Plugin(self._calls, each) for each in found]
