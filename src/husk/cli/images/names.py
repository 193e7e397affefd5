"""Names of images, as docker's client shows them. Pure."""

from husk.client.names import DOCKER_HUB, registry_of, with_tag


def whole(name: str) -> str:
    """All of a name, as a pull ends with: `docker.io/library/busybox:latest`."""
    host = "docker.io" if registry_of(name) == DOCKER_HUB else registry_of(name)
    path = with_tag(name).removeprefix("index.docker.io/").removeprefix(f"{host}/")
    return f"{host}/library/{path}" if host == "docker.io" and "/" not in path else f"{host}/{path}"
