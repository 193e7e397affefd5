"""`husk build`: an image from a Dockerfile."""

import io
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from husk.cli.kit.command import HuskCommand, as_json, flag, many
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.progress import build_teller
from husk.cli.kit.writing import complain, line, say
from husk.client.address import resolve
from husk.client.builds import BuildOptions
from husk.client.client import Client
from husk.client.context import Context
from husk.compression import compression_of
from husk.errors import CommandFailed, HuskError, InvalidParameter

_TEXT: dict[str, Any] = {"metavar": "STRING", "default": ""}


@click.command(cls=HuskCommand)
@many("--add-host", help="Add a custom host-to-IP mapping (host:ip).")
@many("--build-arg", help="Set build-time variables.")
@many("--cache-from", help="Images to consider as cache sources.")
@click.option("-f", "--file", "dockerfile", help="Name of the Dockerfile (default: PATH/Dockerfile).", **_TEXT)
@click.option("--iidfile", help="Write the image ID to a file.", **_TEXT)
@many("--label", help="Set metadata for an image.")
@click.option("--network", help="Set the networking mode for the RUN instructions.", **_TEXT)
@flag("--no-cache", help="Do not use cache when building the image.")
@click.option("--platform", help="Set platform if server is multi-platform capable.", **_TEXT)
@flag("--pull", help="Always attempt to pull a newer version of the image.")
@flag("-q", "--quiet", help="Suppress the build output and print image ID on success.")
@click.option("--shm-size", help="Size of /dev/shm.", **_TEXT)
@many("-t", "--tag", help="Name and optionally a tag in the name:tag format.")
@click.option("--target", help="Set the target build stage to build.", **_TEXT)
@as_json
@click.argument("path", metavar="PATH | URL | -")
@click.pass_obj
def build(place: HostChoice, /, quiet: bool, iidfile: str, as_json: bool, **flags: Any) -> None:
    """Build an image from a Dockerfile."""
    options = options_of(flags, sys.stdin.buffer)

    async def built(engine: Client) -> int:
        await _check_place(engine, place, options)
        try:
            image = await _built(engine, options, quiet, as_json)
        except CommandFailed as error:
            complain(error.message)
            return error.code
        if iidfile:
            _note(iidfile, image)
        if as_json:
            line({"Id": image})
        elif quiet:
            say(image)
        return 0

    ask(place, built)


async def _check_place(engine: Client, place: HostChoice, options: BuildOptions) -> None:
    """An engine on this machine writes what it is sent into its data root: that must not be a part of it."""

    context = _context(options)
    if context is None or not resolve(place.host, place.context).url.startswith("unix://"):
        return
    try:
        data_root = (await engine.info())["DockerRootDir"]
    except (HuskError, KeyError):
        return  # an engine that does not say where it is may build all the same
    if context.sends(Path(data_root)):
        raise InvalidParameter(
            f"the engine keeps its files in {data_root}, which is in the context {options['path']}: "
            "name it in .dockerignore, or build from another directory"
        )


def _context(options: BuildOptions) -> Context | None:
    path = options.get("path")
    return Context(Path(path)) if path is not None and os.path.isdir(path) else None


async def _built(engine: Client, options: BuildOptions, quiet: bool, as_json: bool) -> str:
    image = ""
    with build_teller(1, as_json, quiet) as telling:
        async for step in engine.images.building(**options):
            image = step.image or image
            telling.step(step)
    return image


def options_of(flags: Mapping[str, Any], stdin: BinaryIO) -> BuildOptions:
    """Return the library's options for these flags. The path `-` is a context or a Dockerfile on stdin."""
    options: dict[str, Any] = {
        "buildargs": {name: value if equals else None for name, equals, value in _parted(flags["build_arg"])},
        "labels": {name: value for name, _, value in _parted(flags["label"])},
        "extra_hosts": [each.replace("=", ":", 1) for each in flags["add_host"]],
        "cache_from": list(flags["cache_from"]),
        "dockerfile": flags["dockerfile"],
        "network_mode": flags["network"],
        "nocache": flags["no_cache"],
        "platform": flags["platform"],
        "pull": flags["pull"],
        "shmsize": flags["shm_size"],
        "tag": list(flags["tag"]),
        "target": flags["target"],
    }
    found = {name: value for name, value in options.items() if value}
    if flags["path"] == "-":
        given = stdin.read()
        if not given:
            raise InvalidParameter("stdin is empty: it has to be a Dockerfile, or a context as a tar archive")
        found |= {"fileobj": given, "custom_context": _is_archive(given)}
    else:
        found["path"] = flags["path"]
    return cast(BuildOptions, found)


def _parted(given: tuple[str, ...]) -> list[tuple[str, str, str]]:
    return [each.partition("=") for each in given]


def _is_archive(data: bytes) -> bool:
    """A tar archive, as it is or compressed by gzip, bzip2, xz or zstandard."""

    if compression_of(data):
        return True
    try:
        tarfile.open(fileobj=io.BytesIO(data), mode="r:").close()
    except tarfile.ReadError:
        return False
    return True


def _note(file: str, image: str) -> None:
    try:
        Path(file).write_text(image)
    except OSError as error:
        raise HuskError(f"cannot write {file}: {error.strerror}") from None
