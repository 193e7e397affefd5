"""A registry's data of an image that need not be here."""

from collections.abc import Mapping
from typing import Any

from husk.client.calls import field


class RegistryData:
    """A registry's data of an image: its digest and its platforms.

    data = await engine.images.get_registry_data("busybox")
    print(data.id, data.has_platform("linux/arm64"))
    """

    def __init__(self, name: str, attrs: Mapping[str, Any]) -> None:
        self.name = name  #: The image as it was named
        self.attrs = dict(attrs)  #: The API's document

    def __repr__(self) -> str:
        return f"<RegistryData {self.name} {self.id}>"

    @property
    def id(self) -> str:
        """The digest of what the name points to."""
        return str(field(field(self.attrs, "Descriptor"), "digest"))

    @property
    def platforms(self) -> list[str]:
        """The platforms as docker writes them: `linux/amd64`, `linux/arm/v7`."""
        return [
            "/".join(filter(None, (each.get("os"), each.get("architecture"), each.get("variant"))))
            for each in self.attrs.get("Platforms") or []
        ]

    def has_platform(self, platform: str) -> bool:
        """Tell if there is an image for a platform.

        :param platform: the platform, as `linux/arm64`.
        :returns: True if there is one.
        """
        return platform in self.platforms
