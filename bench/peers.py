"""Commands and namespaces that start each engine so that nothing of it is left behind.

dockerd and podman get a mount namespace with a /run of their own, and where the network counts a network namespace:
bridges, firewall rules and mounts go with their last process. Only cgroups have to be removed by hand.

A second dockerd, newer than the installed one, and a podman can be given by a directory of programs in
HUSK_BENCH_PEERS; without it they are looked for where `make bench` has put them (`bench/fetch-peers`). The newer
dockerd is called `dockerd-new`. `husk-metrics` and `husk-dashboard` are Husk with `--metrics-addr` and `--dashboard`.
"""

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.without import SHORTCUTS

SOURCES = Path(__file__).resolve().parents[1] / "src"
# Where `make bench` puts them: a short name, that only root can write to (see bench/borrow-peers).
KEPT = Path("/opt/hk-peers")
PEERS = os.environ.get("HUSK_BENCH_PEERS") or (str(KEPT / "bin") if (KEPT / "bin").is_dir() else "")

_PREPARE = 'mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"'
_CGROUPS = ("docker", "libpod_parent", "libpod")

# Ways to start Husk: what the program is told beside the usual.
_HUSKS = {
    "husk": (),
    "husk-metrics": ("--metrics-addr", "127.0.0.1:0"),
    "husk-dashboard": ("--dashboard", "127.0.0.1:0"),
    **{f"husk-without-{shortcut}": () for shortcut in SHORTCUTS},
}


def available(name: str) -> bool:
    return name in _HUSKS or shutil.which(name.removesuffix("-new"), path=_search_path(name)) is not None


def command(name: str, home: Path, network: bool, bridge: str = "") -> tuple[list[str], dict[str, str]]:
    """The command line and environment of an engine that keeps everything below `home` and listens on `home/s`.

    With `bridge` a dockerd is for a network namespace that the caller brings: it has a bridge with this address.
    """
    host = f"unix://{home}/s"
    directories = ["--data-root", f"{home}/d", "--exec-root", f"{home}/r"]
    settings = home / "daemon.json"
    settings.write_text("{}")
    if name in _HUSKS:
        shortcut = name.removeprefix("husk-without-")
        program = ["-m", "husk"] if shortcut == name else [str(Path(__file__).with_name("without.py")), shortcut]
        # 10.232 is dockerd's.
        subnet = ["--bip", f"10.{231 if name == 'husk' else 232 + list(_HUSKS).index(name)}.0.1/16"]
        serve = [sys.executable, *program, "serve", "-H", host, *subnet, *directories, "--config-file", str(settings)]
        return [*serve, *_HUSKS[name]], {"PYTHONPATH": str(SOURCES), "PYTHONDONTWRITEBYTECODE": ""}
    temporary = home / "tmp"
    temporary.mkdir()
    environment = {"PATH": _search_path(name), "HOME": str(home), "TMPDIR": str(temporary)}
    if name.startswith("dockerd"):
        daemon = ["dockerd", "-H", host, "--pidfile", f"{home}/pid", "--config-file", str(settings), *directories]
        bridge = "10.232.0.1/16" if network else bridge
        daemon += ["--bip", bridge] if bridge else ["--bridge=none", "--iptables=false", "--ip6tables=false"]
        return _apart(daemon, network), environment
    stores = ["--root", f"{home}/d", "--runroot", f"{home}/r", "--tmpdir", f"{home}/t"]
    return (
        _apart(["podman", *stores, "system", "service", "-t", "0", host], network),
        environment | _podman_settings(home),
    )


@contextlib.contextmanager
def cgroups_removed() -> Iterator[None]:
    """Remove the parents of containers' cgroups that dockerd and podman leave, unless they were there before."""
    trees = [Path("/sys/fs/cgroup"), *(entry for entry in Path("/sys/fs/cgroup").iterdir() if entry.is_dir())]
    fresh = [tree / name for tree in trees for name in _CGROUPS if not (tree / name).exists()]
    try:
        yield
    finally:
        deadline = time.monotonic() + 5  # the last processes may still be on their way out
        while left := [top for top in fresh if top.exists()]:
            for path in (path for top in left for path, _, _ in os.walk(top, topdown=False)):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)


def _apart(program: list[str], network: bool) -> list[str]:
    namespaces = ["--mount", "--propagation", "private", *(["--net"] if network else [])]
    return ["unshare", *namespaces, "sh", "-c", _PREPARE, "sh", *program]


def _search_path(name: str) -> str:
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    if name.endswith("-new"):
        # Nothing at all rather than the installed one under another name.
        return f"{PEERS}:{path}" if (Path(PEERS) / name.removesuffix("-new")).is_file() else ""
    return f"{path}:{PEERS}" if PEERS else path


def _podman_settings(home: Path) -> dict[str, str]:
    """Write the settings that a podman that is not installed needs to find its helpers and a registry on loopback."""
    registries, containers = home / "registries.conf", home / "containers.conf"
    registries.write_text('[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n')
    lines = ["[engine]", 'cgroup_manager = "cgroupfs"', 'events_logger = "file"']
    programs = {name: found for name in ("conmon", "crun") if (found := _own(name))}
    if PEERS:
        lines.append(f"helper_binaries_dir = {json.dumps([PEERS, '/usr/lib/podman', '/usr/libexec/podman'])}")
    if "conmon" in programs:
        lines.append(f"conmon_path = {json.dumps([programs['conmon']])}")
    lines.append('runtime = "crun"')
    if "crun" in programs:
        lines += ["[engine.runtimes]", f"crun = {json.dumps([programs['crun']])}"]
    containers.write_text("\n".join(lines) + "\n")
    policy = home / ".config/containers/policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    return {
        "CONTAINERS_CONF": str(containers),
        "CONTAINERS_REGISTRIES_CONF": str(registries),
        "PODMAN_IGNORE_CGROUPSV1_WARNING": "1",
    }


def _own(name: str) -> str | None:
    """A helper of the podman that runs: beside it, else the installed one."""
    return shutil.which(name, path=f"{PEERS}:{_search_path('podman')}" if PEERS else _search_path("podman"))
