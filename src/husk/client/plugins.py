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
        """The name."""
        return str(self.attrs.get("Name", ""))

    @property
    def enabled(self) -> bool:
        """True if the plugin is enabled."""
        return bool(self.attrs.get("Enabled"))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings, as the API has them."""
        return dict(self.attrs.get("Settings") or {})

    async def reload(self) -> None:
        """Ask the engine again, and put its answer into `attrs`."""
        self.attrs = await self._calls.get(f"{self._path}/json")

    async def enable(self, timeout: int = 10) -> None:
        """Let the plugin work.

        :param timeout: seconds to wait for it.
        """
        await self._calls.post(f"{self._path}/enable", None, {"timeout": timeout})
        await self.reload()

    async def disable(self, *, force: bool = False) -> None:
        """Let the plugin rest.

        :param force: also while something uses it.
        """
        await self._calls.post(f"{self._path}/disable", None, {"force": force})
        await self.reload()

    async def configure(self, options: Sequence[str]) -> None:
        """Change settings of a plugin that is not enabled.

        :param options: the settings, as `DEBUG=1` or `key.source=/x`.
        """
        await self._calls.post(f"{self._path}/set", list(options))
        await self.reload()

    async def push(self) -> None:
        """Send the plugin to its registry."""
        await self._calls.post(f"{self._path}/push")

    async def remove(self, *, force: bool = False) -> None:
        """Remove the plugin.

        :param force: also while it is enabled.
        """
        await self._calls.delete(self._path, {"force": force})

    @property
    def _path(self) -> str:
        return f"/plugins/{self.name}"


class Plugins:
    """`engine.plugins`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, name: str) -> Plugin:
        """Find a plugin.

        :param name: its name or id.
        :returns: the plugin.
        :raises NotFound: there is none.
        """
        return Plugin(self._calls, await self._calls.get(f"/plugins/{name}/json"))

    async def list(self, *, filters: Mapping[str, Any] | None = None) -> list[Plugin]:
        """List the plugins.

        :param filters: conditions by name: `{"enabled": True}`.
        :returns: the plugins.
        """
        found = await self._calls.get("/plugins", {"filters": filters_of(filters)})
        return [Plugin(self._calls, each) for each in found]
