"""The OCI runtimes that this host has, and the choice of the one that a container gets."""

import asyncio
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from husk.config import Config, RuntimeConfig
from husk.errors import HuskError, InvalidParameter, Unavailable
from husk.kernel import cgroups, process
from husk.runtime import notes
from husk.runtime.oci import FILTER, OCIRuntime
from husk.runtime.process import which

log = logging.getLogger(__name__)

# What docker calls its runc: clients send it back to us from `docker info`.
_ALIASES = {"io.containerd.runc.v2": "runc"}
# `status` and `exec.fifo` are the same in all of these.
_OLDEST_CRUN, _NEWEST_CRUN = (1, 0), (1, 29)


class Runtimes:
    """The runtimes that containers may name, and the one they get otherwise."""

    def __init__(
        self,
        runtimes: Mapping[str, OCIRuntime],
        default: str,
        sealed: Sequence[int] = (),
        installed: Mapping[str, OCIRuntime] | None = None,
        usual: str = "",
        retired: Mapping[str, OCIRuntime] | None = None,
    ) -> None:
        """`installed` are those that are there whatever the settings name, `usual` is the default of settings without
        one, `retired` are no longer named, but containers may run with them."""
        self.all = dict(runtimes)
        self.default = self.all[default]
        self._installed = dict(self.all if installed is None else installed)
        self._usual = usual or default
        self._retired = dict(retired or {})
        self._sealed = list(sealed)

    def close(self) -> None:
        """Let the sealed copies go; containers are not touched."""
        while self._sealed:
            os.close(self._sealed.pop())

    def reload(self, config: Config) -> None:
        """Take over new and changed runtimes, and another default. What is no longer named is there for nothing but
        the containers that run with it. InvalidParameter changes nothing."""
        found = {**self._installed, **_configured(config)}
        default = config.default_runtime or self._usual
        if default not in found:
            raise InvalidParameter(_not_installed(default))
        _settle(found.values())
        self._retired = {runtime.name: runtime for runtime in self.known() if runtime.name not in found}
        self.all, self.default = found, found[default]

    def settings(self) -> dict[str, RuntimeConfig]:
        """Those that containers may name, as settings name them."""
        return {name: RuntimeConfig(runtime.path, runtime.args) for name, runtime in self.all.items()}

    def known(self) -> list[OCIRuntime]:
        """All that containers may run with, also those that no other container gets any more."""
        return [*self._retired.values(), *self.all.values()]

    def of(self, name: str) -> OCIRuntime:
        """The runtime of a container that runs: it may be one that no other container gets any more."""
        return self._retired.get(name) or self.get(name)

    def get(self, name: str) -> OCIRuntime:
        """The runtime of that name for what is to be started; the default one for an empty name."""
        if not name:
            return self.default
        found = self.all.get(name) or self.all.get(_ALIASES.get(name, ""))
        if found is None:
            if name in _ALIASES:
                return self.default
            raise InvalidParameter(f"unknown or invalid runtime name: {name}")
        return found


async def find_runtimes(config: Config) -> Runtimes:
    """The configured runtimes, and crun and runc where they are installed. The default is the configured one, else
    crun where it can work, else runc."""
    roots = config.exec_root / "runtimes"
    installed: dict[str, OCIRuntime] = {}
    for name in ("crun", "runc"):
        if path := which(name, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"):
            installed[name] = OCIRuntime(name, path, (), roots / name)
    found = {**installed, **_configured(config)}
    blockers = await asyncio.to_thread(lambda: cgroups.hybrid_blocker() + cgroups.unmounted())
    usual = _choose(found, blockers)
    default = config.default_runtime or usual
    if not default:
        raise Unavailable("no OCI runtime found: install crun or runc, or run `husk doctor --fix`")
    if not config.default_runtime and default != "crun" and "crun" in found:
        log.warning(
            "crun cannot work while no cgroup v1 tree of %s is mounted: containers use runc, which is slower. "
            "Cure: husk doctor --fix",
            ", ".join(blockers),
        )
    if default not in found:
        raise InvalidParameter(_not_installed(default))
    await asyncio.to_thread(_settle, found.values())
    retired = await asyncio.to_thread(_left_over, roots, found)
    for name, usable in found.items():
        if Path(usable.path).name == "crun" and not usable.args:
            takes = await asyncio.to_thread(notes.names, usable.path, FILTER)
            found[name] = replace(usable, known_files=await _has_known_files(usable), takes_filters=takes)
    sealed = []
    if "crun" in found and (fd := await asyncio.to_thread(_seal, found["crun"].path)) is not None:
        found["crun"] = replace(found["crun"], sealed=f"/proc/{os.getpid()}/fd/{fd}")
        sealed.append(fd)
    installed = {name: plain if name in config.runtimes else found[name] for name, plain in installed.items()}
    return Runtimes(found, default, sealed, installed, usual, retired)


def _settle(runtimes: Iterable[OCIRuntime]) -> None:
    """Make their roots, and note there which program it is: a container may outlive the settings that name it."""
    for runtime in runtimes:
        notes.write(runtime.root, runtime.path, runtime.args)


def _left_over(roots: Path, found: Mapping[str, OCIRuntime]) -> dict[str, OCIRuntime]:
    """The runtimes that no settings name any more, though containers of theirs are there."""
    left = {}
    for root in roots.iterdir():
        if root.name in found or not root.is_dir():
            continue
        if (note := notes.read(root)) is None:
            log.debug("%s tells no program", root)
            continue
        runtime = OCIRuntime(root.name, note.path, note.args, root)
        if runtime.known():
            left[root.name] = runtime
    return left


def _configured(config: Config) -> dict[str, OCIRuntime]:
    found = {}
    for name, runtime in config.runtimes.items():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise InvalidParameter(f"invalid runtime name: {name!r}")
        path = which(runtime.path) or runtime.path
        found[name] = OCIRuntime(name, path, runtime.args, config.exec_root / "runtimes" / name)
    return found


def _not_installed(name: str) -> str:
    return f"the default runtime {name} is not installed and not in the configuration"


async def _has_known_files(runtime: OCIRuntime) -> bool:
    note = await asyncio.to_thread(notes.read, runtime.root)
    told = note.version if note is not None else ""
    if not told:
        try:
            told = await runtime.version()
        except (HuskError, OSError) as error:
            log.warning("%s does not tell its version: %s", runtime.path, error)
            return False
        await asyncio.to_thread(notes.write, runtime.root, runtime.path, runtime.args, told)
    if knows_files(told):
        return True
    log.info("%s (%s) is started for every verb: how it keeps its files is not known", runtime.path, told)
    return False


def knows_files(version: str) -> bool:
    """Return True if this is a crun, by what it tells about itself, whose private files are known from its source."""
    match = re.match(r"crun version (\d+)\.(\d+)", version)
    return match is not None and _OLDEST_CRUN <= (int(match[1]), int(match[2])) <= _NEWEST_CRUN


def _seal(path: str) -> int | None:
    try:
        return process.sealed_copy(path)
    except OSError as error:  # some hosts forbid programs in memory; it only saves time
        log.debug("no sealed copy of %s: %s", path, error)
        return None


def _choose(found: Mapping[str, OCIRuntime], blockers: tuple[str, ...]) -> str:
    """Choose what containers get when nobody chose: crun where it can work, else runc; empty without both."""
    order = ("runc", "crun") if blockers else ("crun", "runc")
    return next((name for name in order if name in found), "")
