"""The client of registries as the engine has it: made when somebody first asks a registry for something."""

from typing import TYPE_CHECKING

from husk.config import Config
from husk.version import __version__

if TYPE_CHECKING:
    from husk.registry.client import RegistryClient


class LateRegistry:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._client: RegistryClient | None = None

    def client(self) -> "RegistryClient":
        """The same for all."""
        if self._client is None:
            # A door: the client of registries, which a daemon that never pulls does without.
            from husk.registry.client import RegistryClient

            self._client = RegistryClient(
                self._config.insecure_registries,
                self._config.registry_mirrors,
                f"husk/{__version__}",
                proxies=self._config.proxies,
                attempts=self._config.max_download_attempts,
            )
        return self._client

    def reload(self, config: Config) -> None:
        """Take over what may change while the daemon runs, whether it is made or not."""
        self._config = config
        if self._client is not None:
            self._client.configure(config.insecure_registries, config.registry_mirrors, config.max_download_attempts)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
