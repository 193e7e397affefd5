"""`husk compose` and `husk buildx`: Docker's plugins, run where they are, with the address of the engine."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from husk.cli.kit.place import HostChoice
from husk.client.address import Address, config_directory, read_json, resolve
from husk.errors import CommandFailed

# Where packages put them, as docker's client looks.
_SYSTEM = (
    "/usr/local/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins",
    "/usr/lib/docker/cli-plugins",
    "/usr/libexec/docker/cli-plugins",
)
_PACKAGES = {
    "compose": "docker-compose-v2 (Ubuntu), docker-compose (Debian 13, Arch) or docker-compose-plugin (docker.com)",
    "buildx": "docker-buildx (Debian, Ubuntu, Arch, Fedora) or docker-buildx-plugin (docker.com)",
}


def _plugin(name: str, help: str) -> click.Command:
    @click.command(
        name,
        help=help,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_obj
    def command(place: HostChoice, /, arguments: tuple[str, ...]) -> None:
        address = resolve(place.host, place.context)
        program = found(name)
        try:
            os.execve(program, [program, name, *arguments], environment(address))
        except OSError as error:
            raise CommandFailed(f"husk: the plugin {program} cannot be run: {error.strerror}", 1) from None

    return command


def found(name: str) -> str:
    """Find a plugin; CommandFailed says what to install where there is none."""
    for directory in directories():
        program = directory / f"docker-{name}"
        if os.access(program, os.X_OK) and program.is_file():
            return str(program)
    raise CommandFailed(
        f"husk: {name} is Docker's plugin docker-{name}, which is not on this machine. Install the package "
        f"{_PACKAGES[name]}, or put the program into {config_directory() / 'cli-plugins'}",
        1,
    )


def directories() -> Iterator[Path]:
    """Yield where docker's client looks, in its order."""
    yield config_directory() / "cli-plugins"
    for more in read_json(config_directory() / "config.json").get("cliPluginsExtraDirs") or ():
        yield Path(str(more))
    yield from map(Path, _SYSTEM)


def environment(address: Address, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Say in docker's variables where the engine is; ours, and a context of docker's, would lead elsewhere."""
    said = {name: value for name, value in given.items() if name not in ("DOCKER_CONTEXT", "DOCKER_TLS", "HUSK_HOST")}
    said["DOCKER_HOST"] = address.url
    if address.certificates is not None:
        said["DOCKER_CERT_PATH"] = str(address.certificates)
        said["DOCKER_TLS_VERIFY" if address.verify else "DOCKER_TLS"] = "1"
    return said


compose = _plugin("compose", "Docker Compose: run Docker's plugin with this engine.")
buildx = _plugin("buildx", "Docker Buildx: run Docker's plugin with this engine.")
