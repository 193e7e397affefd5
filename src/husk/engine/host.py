"""This host's offer to containers: facts gathered once, when the engine opens."""

import os

import msgspec

from husk.config import Config
from husk.errors import InvalidParameter
from husk.runtime import host_files
from husk.runtime.process import which
from husk.runtime.seccomp import custom_profile
from husk.runtime.spec.host_facts import HostFacts, read_host_facts
from husk.text.documents import MalformedDocument

_INITS = ("docker-init", "tini-static", "tini", "catatonit")


class EngineHost(msgspec.Struct, frozen=True):
    limits: HostFacts
    machine: str
    default_runtime: str
    init_path: str
    conmon_path: str
    kernel: str = ""
    open_files: int = 0
    """The soft limit of open files that containers get; 0 for that of the daemon."""
    init: bool = False
    """Things that containers get which do not say otherwise, by the daemon's settings: an init process,"""
    no_new_privileges: bool = False
    seccomp: str = ""
    """and a filter of system calls: the text of a profile, "unconfined", or "" for Husk's own."""
    masked_paths: tuple[str, ...] = ()
    """Files of this host's hardware that containers must not read, besides what is masked everywhere."""

    @property
    def cgroup_v2(self) -> bool:
        return self.limits.cgroup_v2

    @property
    def swap_limit(self) -> bool:
        return self.limits.swap_limit

    @classmethod
    def probe(cls, default_runtime: str, open_files: int = 0, settings: Config | None = None) -> "EngineHost":
        settings = settings or Config()
        inits = (settings.init_path,) if settings.init_path else _INITS
        init_path = next(filter(None, map(which, inits)), "")
        if settings.containers.init and not init_path:
            raise InvalidParameter("init: containers cannot get an init process without its program: install tini")
        return cls(
            limits=read_host_facts(),
            machine=os.uname().machine,
            kernel=os.uname().release,
            default_runtime=default_runtime,
            init_path=init_path,
            conmon_path=which("conmon") or "",
            open_files=open_files,
            init=settings.containers.init,
            no_new_privileges=settings.containers.no_new_privileges,
            seccomp=_seccomp(settings.containers.seccomp_profile),
            masked_paths=tuple(host_files.throttles()),
        )


def _seccomp(setting: str) -> str:
    """Return the text of the setting's profile, which is read once, as by dockerd; empty for the built-in one."""
    if setting in ("builtin", "unconfined"):
        return "" if setting == "builtin" else setting

    try:
        text = host_files.profile(setting)
        custom_profile.parse(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParameter(f"opening seccomp profile ({setting}) failed: {error}") from None
    except MalformedDocument as error:
        raise InvalidParameter(f"decoding seccomp profile ({setting}) failed: {error}") from None
    return text
