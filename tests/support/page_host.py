"""The host that a page of docs/howto is followed on: as if somebody had just installed Husk there.

It has a network and an /etc of its own, a daemon at /run/husk.sock that reads /etc/husk/daemon.json, the docker command
with its plugins, `sudo`, and a mirror of Docker Hub with the few images that pages name, which are made from what this
machine has. systemd is not there: what pages tell it to do with the daemon is done by hand. A lab that a page makes has
a name that no other lab of this machine has, for they share processes and /var/lib; nobody there sees that.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from husk.kernel.namespaces import run_inside
from tests.support.certificates import Authority
from tests.support.daemon import Daemon
from tests.support.images import busybox_layer
from tests.support.page_shell import Shell
from tests.support.pages import Block, Command
from tests.support.registry import PASSWORD, USERNAME, Image, Registry, make_image, tar_of, upload
from tests.support.waiting import until

_ROOT = Path(__file__).resolve().parents[2]
_PLUGINS = _ROOT / ".venv/docker/cli-plugins"
# An address of the host, as if it were on some network: of those that are for documentation.
_NETWORK = """
set -e
ip link set lo up
ip link add eth0 type veth peer name far0
ip address add 192.0.2.10/24 dev eth0
ip link set eth0 up; ip link set far0 up
ip route add default via 192.0.2.1
mount -t tmpfs none /run
mkdir /run/husk-labs
ln -s "$1" /run/husk-labs/husk-lab
mount -t tmpfs none "$0"
mkdir "$0/upper" "$0/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$0/upper,workdir=$0/work" /etc
mkdir -p /etc/husk
echo '{}' > /etc/husk/daemon.json
echo '127.0.0.1 localhost registry.example.com' > /etc/hosts
echo ready
exec sleep infinity
"""
_TOOLS = {
    "sudo": 'exec "$@"',
    "husk": f"""\
export PYTHONPATH={_ROOT}/src
[ "$1" = lab ] || exec {sys.executable} -m husk "$@"
said=$({sys.executable} -m husk "$@" --name "$PAGE_LAB")
ended=$?
[ -z "$said" ] || printf '%s\\n' "$said" | sed "s/$PAGE_LAB/husk-lab/g"
exit $ended""",
    "python3": f'PYTHONPATH={_ROOT}/src exec {sys.executable} "$@"',
}


class PageHost(NamedTuple):
    """One such host. `follow` is all that tests need of it."""

    daemon: Daemon
    shell: Shell

    def follow(self, block: Block) -> None:
        for command in block.commands:
            if (act := self._of_systemd(command)) is not None:
                act()
            elif block.kind == "terminal":
                self.shell.type(command)
            elif block.kind == "background":
                self.shell.go_on(command)
            elif block.kind == "run":
                self.shell.run(command, block.status)
        if block.kind == "file":
            self.shell.write(block.name, block.text)

    def _of_systemd(self, command: Command) -> Callable[[], None] | None:
        return {
            "sudo systemctl restart husk": self.daemon.restart,
            "sudo systemctl reload husk": self._reload,
        }.get(command.text)

    def _reload(self) -> None:
        before = self._reloads()
        self.daemon.reload()
        until(lambda: self._reloads() > before, "the daemon has read its settings again")

    def _reloads(self) -> int:
        return self.daemon.log_path.read_text().count("SIGHUP: configuration reloaded")


@contextlib.contextmanager
def page_host(page: str, *, pointed: bool) -> Iterator[PageHost]:
    """For this text. `pointed`: DOCKER_HOST names the daemon already, as the page on first steps tells."""
    with contextlib.ExitStack() as parts:
        home = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="husk-page-")))
        environment = {**_environment(home), "PAGE_LAB": f"hkp{secrets.token_hex(4)}"}
        holder = parts.enter_context(_namespaces(home, environment["PAGE_LAB"]))
        enter = ["nsenter", f"--target={holder}", "--mount", "--net"]
        namespace = Path(f"/proc/{holder}/ns/net")
        mirror = parts.enter_context(_mirror(namespace, page))
        flags = ["--config-file", "/etc/husk/daemon.json", "-H", "unix:///run/husk.sock", "--registry-mirror", mirror]
        daemon = parts.enter_context(Daemon(*flags, wrapper=tuple(enter)))
        # Where it would have its sockets and other files of this boot.
        subprocess.run([*enter, "ln", "-s", str(daemon.config.exec_root), "/run/husk"], check=True)
        if "registry.example.com" in page:
            parts.enter_context(_private_registry(namespace, home))
            environment |= {"USER": USERNAME, "PASSWORD": PASSWORD}
        if "docker -H unix:///var/run/docker.sock" in page:
            parts.enter_context(_docker(enter, mirror))
        environment |= {"DOCKER_HOST": "unix:///run/husk.sock"} if pointed else {}
        if "husk lab up" in page:
            # Also where the page is not followed to its end.
            parts.callback(subprocess.run, [*enter, "husk", "lab", "down"], env=environment, check=True)
        words = [*enter, f"--wd={home / 'work'}"]
        yield PageHost(daemon, parts.enter_context(Shell(words, environment)))


@contextlib.contextmanager
def _namespaces(home: Path, lab: str) -> Iterator[int]:
    """A process that holds them; its id."""
    (home / "etc").mkdir()
    command = ["unshare", "--mount", "--propagation=private", "--net", "sh", "-c", _NETWORK, str(home / "etc"), lab]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"ready\n"
            yield holder.pid
        finally:
            holder.kill()


def _environment(home: Path) -> dict[str, str]:
    """That of somebody at this host, with nothing of whoever runs the tests."""
    tools, plugins = home / "bin", home / ".docker/cli-plugins"
    for directory in (tools, plugins, home / "work"):
        directory.mkdir(parents=True)
    for name, text in _TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    for plugin in _PLUGINS.iterdir():
        (plugins / plugin.name).symlink_to(plugin)
    (home / "husk").symlink_to(_ROOT)
    return {"HOME": str(home), "PATH": f"{tools}:{os.environ['PATH']}", "LANG": "C.UTF-8"}


@contextlib.contextmanager
def _mirror(namespace: Path, page: str) -> Iterator[str]:
    """The registry that stands for Docker Hub, with what the page names; its address on this host."""
    mirror = Registry()
    run_inside(namespace, mirror.start)
    try:
        run_inside(namespace, lambda: _fill(mirror, page))
        yield mirror.url
    finally:
        mirror.close()


@contextlib.contextmanager
def _private_registry(namespace: Path, home: Path) -> Iterator[None]:
    """A registry that asks for a login, with a certificate of an authority whose own lies in the page's directory."""
    pair = Authority(home / "certificates").issue("server", addresses=["registry.example.com"])
    shutil.copy(pair.ca, home / "work/ca.crt")
    tls = {"certificate": pair.cert, "key": pair.key}
    registry = Registry(login=True, address="127.0.0.1:5443", tls=tls)
    run_inside(namespace, registry.start)
    try:
        yield
    finally:
        registry.close()


@contextlib.contextmanager
def _docker(enter: Sequence[str], mirror: str) -> Iterator[None]:
    """Run a stand-in for the engine that people come from, with a container that keeps orders: a second Husk."""
    with Daemon("-H", "unix:///run/docker.sock", "--registry-mirror", mirror, wrapper=tuple(enter)) as other:
        other.docker("run", "--rm", "-v", "orders:/orders", "busybox", "sh", "-c", "echo one > /orders/list")
        other.docker("network", "create", "shops")
        publish = ["--network", "shops", "-p", "8080:80", "-v", "orders:/orders"]
        other.docker("run", "-d", "--name", "shop", *publish, "nginx")
        yield
        other.docker("network", "prune", "-f")
        other.remove_containers()
        other.docker("volume", "prune", "-af")
        other.docker("network", "prune", "-f")


def _fill(mirror: Registry, page: str) -> None:
    for name, make in _IMAGES.items():
        repository, _, tag = name.partition(":")
        if name.removesuffix(":latest") in page:
            upload(mirror, f"library/{repository}", tag, make())


@cache
def _nginx() -> Image:
    page = tar_of({"usr/share/nginx/html/index.html": b"<h1>Welcome to nginx!</h1>\n"})
    serve = ["/bin/busybox", "httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"]
    # busybox hears no other signal when it is the first process.
    return make_image([busybox_layer(), page], {"Cmd": serve, "ExposedPorts": {"80/tcp": {}}, "StopSignal": "SIGKILL"})


@cache
def _busybox() -> Image:
    """Services ask a registry for the digest of what is here already."""
    return make_image([busybox_layer("wc")], {"Cmd": ["/bin/sh"]})


@cache
def _debian() -> Image:
    return make_image([busybox_layer()], {"Cmd": ["/bin/sh"]})


@cache
def _registry() -> Image:
    """docker-registry with the libraries that it is linked with."""
    program = shutil.which("docker-registry")
    assert program is not None
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split()
    files = {path.lstrip("/"): Path(path).read_bytes() for path in listed if path.startswith("/")}
    settings = b"version: 0.1\nstorage: {filesystem: {rootdirectory: /var/lib/registry}}\nhttp: {addr: ':5000'}\n"
    layer = tar_of({"registry": Path(program).read_bytes(), "config.yml": settings, **files})
    return make_image([layer], {"Cmd": ["/registry", "serve", "/config.yml"]}, compression="none")


# What pages pull: it runs, and is small.
_IMAGES = {"busybox:latest": _busybox, "nginx:latest": _nginx, "debian:12-slim": _debian, "registry:2": _registry}
