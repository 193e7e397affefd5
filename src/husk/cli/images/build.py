"""`husk build`: an image from a Dockerfile."""

import io
import os
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from husk.cli.containers.spec import ulimit_of
from husk.cli.kit.command import HuskCommand, as_json, flag, many, number
from husk.cli.kit.engine import ENDED_BY_USER, ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.progress import build_teller
from husk.cli.kit.writing import complain, line, say
from husk.client.address import resolve
from husk.client.builds import BuildOptions
from husk.client.client import Client
from husk.client.context import Context
from husk.compression import compression_of
from husk.errors import CommandFailed, HuskError, InvalidParameter

# Limits of steps: the library's names, and those of flags.
_LIMITS = {
    "memory": "memory",
    "memswap": "memory_swap",
    "cpushares": "cpu_shares",
    "cpusetcpus": "cpuset_cpus",
    "cpusetmems": "cpuset_mems",
    "cpuperiod": "cpu_period",
    "cpuquota": "cpu_quota",
}
_TEXT: dict[str, Any] = {"metavar": "STRING", "default": ""}


@click.command(cls=HuskCommand)
@many("--add-host", help="Add a custom host-to-IP mapping (host:ip).")
@many("--build-arg", help="Set build-time variables.")
@many("--cache-from", help="Images to consider as cache sources.")
@click.option("--cgroup-parent", help="Set the parent cgroup for the RUN instructions.", **_TEXT)
@flag("--compress", hidden=True, help="Contexts go to an engine beside us, or by ssh, which compresses.")
@number("--cpu-period", help="Limit the CPU CFS (Completely Fair Scheduler) period.")
@number("--cpu-quota", help="Limit the CPU CFS (Completely Fair Scheduler) quota.")
@number("-c", "--cpu-shares", help="CPU shares (relative weight).")
@click.option("--cpuset-cpus", help="CPUs in which to allow execution (0-3, 0,1).", **_TEXT)
@click.option("--cpuset-mems", help="MEMs in which to allow execution (0-3, 0,1).", **_TEXT)
@click.option("-f", "--file", "dockerfile", help="Name of the Dockerfile (default: PATH/Dockerfile), or -.", **_TEXT)
@flag("--force-rm", hidden=True, help="Steps leave no containers.")
@click.option("--iidfile", help="Write the image ID to a file.", **_TEXT)
@many("--label", help="Set metadata for an image.")
@click.option("-m", "--memory", help="Memory limit.", **_TEXT)
@click.option("--memory-swap", help="Swap limit equal to memory plus swap: -1 to enable unlimited swap.", **_TEXT)
@click.option("--network", help="Set the networking mode for the RUN instructions.", **_TEXT)
@flag("--no-cache", help="Do not use cache when building the image.")
@click.option("--platform", help="Set platform if server is multi-platform capable.", **_TEXT)
@flag("--pull", help="Always attempt to pull a newer version of the image.")
@flag("-q", "--quiet", help="Suppress the build output and print image ID on success.")
@flag("--rm", default=True, hidden=True, help="Steps leave no containers.")
@many("--security-opt", help="Security options.")
@click.option("--shm-size", help="Size of /dev/shm.", **_TEXT)
@flag("--squash", help="Squash newly built layers into a single new layer.")
@many("-t", "--tag", help="Name and optionally a tag in the name:tag format.")
@click.option("--target", help="Set the target build stage to build.", **_TEXT)
@many("--ulimit", help="Ulimit options.")
@as_json
@click.argument("path", metavar="PATH | URL | -")
@click.pass_obj
def build(place: HostChoice, /, quiet: bool, iidfile: str, as_json: bool, **flags: Any) -> None:
    """Build an image from a Dockerfile."""
    with ExitStack() as kept:
        _build(place, options_of(flags, sys.stdin.buffer, kept), quiet, iidfile, as_json)


def _build(place: HostChoice, options: BuildOptions, quiet: bool, iidfile: str, as_json: bool) -> None:
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

    try:
        ask(place, built)
    except SystemExit as left:
        if left.code == ENDED_BY_USER:
            complain("husk: the build was cancelled; the steps that were done are in the cache")
        raise


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


def options_of(flags: Mapping[str, Any], stdin: BinaryIO, kept: ExitStack) -> BuildOptions:
    """Return the library's options for these flags; files that they need are there as long as `kept` is open.

    The path `-` is a context or a Dockerfile on stdin, the Dockerfile `-` one on stdin for another context.
    """
    if flags["path"] == "-" and flags["dockerfile"] == "-":
        raise InvalidParameter("invalid argument: can't use stdin for both build context and dockerfile")
    options: dict[str, Any] = {
        "buildargs": {name: value if equals else None for name, equals, value in _parted(flags["build_arg"])},
        "labels": {name: value for name, _, value in _parted(flags["label"])},
        "extra_hosts": [each.replace("=", ":", 1) for each in flags["add_host"]],
        "cache_from": list(flags["cache_from"]),
        "dockerfile": _dockerfile(flags["path"], flags["dockerfile"], stdin, kept),
        "cgroup_parent": flags["cgroup_parent"],
        "container_limits": {name: flags[flag] for name, flag in _LIMITS.items() if flags[flag]},
        "security_opt": list(flags["security_opt"]),
        "squash": flags["squash"],
        "ulimits": dict(ulimit_of(text) for text in flags["ulimit"]),
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


def _dockerfile(path: str, name: str, stdin: BinaryIO, kept: ExitStack) -> str:
    """Return the Dockerfile's path: for a context of ours from the current directory, as docker's client reads it."""
    if name == "-":
        directory = kept.enter_context(tempfile.TemporaryDirectory(prefix="husk-build-"))
        file = Path(directory) / "Dockerfile"
        file.write_bytes(stdin.read())
        return str(file)
    return os.path.abspath(name) if name and os.path.isdir(path) else name


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
