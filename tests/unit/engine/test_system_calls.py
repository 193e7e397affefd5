"""The engine decides and records; what happens on the host is done by drivers. Held here, by reading the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import husk

SOURCE = Path(husk.__file__).parent
ENGINE, BUILDER, SWARM = SOURCE / "engine", SOURCE / "builder", SOURCE / "swarm"
# Rooms of the wings that are drivers: they speak with hosts, files and programs.
DRIVERS = [
    BUILDER / "store",
    SWARM / "ca",
    SWARM / "port",
    SWARM / "state/etcd",
    SWARM / "state/member_files.py",
    SWARM / "transport",
]

# Facts about this process and this machine, and pure functions; everything else of `os` is asked of a driver.
FACTS = {
    "os.path.basename", "os.path.exists", "os.cpu_count", "os.getpid", "os.urandom", "os.uname", "os.sysconf",
    "os.sched_getaffinity", "socket.gethostname", "socket.inet_pton", "socket.AF_INET",
}  # fmt: skip
ASKED_OF_DRIVERS = ("os", "shutil", "ctypes", "subprocess", "socket", "signal.pidfd_send_signal", "mmap", "fcntl")
# What a `Path` does to the disk. Drivers have other names for what they offer, or are modules that were imported.
OF_PATHS = {
    "chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_mount", "is_socket", "is_symlink", "iterdir",
    "lstat", "mkdir", "read_bytes", "read_text", "readlink", "rglob", "rmdir", "samefile", "stat", "symlink_to",
    "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip


# Who asks something about a path of a client's in a thread: `os.path.exists`, which is handed over to it. The `stat` of
# a builder is that of a file of a result.
FOREIGN_PATHS = {"self._assembly", "self._builder", "self._counted", "self._foreign"}


def of_modules(tree: ast.AST) -> Iterator[str]:
    """Every `module.name` of a module that only drivers may use, and what is imported from one by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := dotted(node)) != "os.path":
            yield name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def dotted(node: ast.expr) -> str:
    """`a.b.c` as it is written; empty for what begins with anything but a name."""
    if isinstance(node, ast.Attribute):
        above = dotted(node.value)
        return above and f"{above}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def of_files(tree: ast.AST) -> Iterator[str]:
    """Every call of `open`, and of a method that a path has for the disk; those of modules are drivers."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {name.asname or name.name for node in imports for name in node.names}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Name) and call.func.id == "open":
            yield "open"
        if isinstance(call.func, ast.Attribute) and call.func.attr in OF_PATHS:
            yield from [] if dotted(call.func.value) in modules | FOREIGN_PATHS else [ast.unparse(call.func)]


def asked_directly(code: str) -> set[str]:
    tree = ast.parse(code)
    named = {name for name in of_modules(tree) if name not in FACTS}
    return {name for name in named if name.partition(".")[0] in ASKED_OF_DRIVERS or name in ASKED_OF_DRIVERS}.union(
        of_files(tree)
    )


def test_no_module_of_the_engine_calls_the_system() -> None:
    paths = [path for place in (ENGINE, BUILDER, SWARM) for path in place.rglob("*.py")]
    paths = [path for path in paths if not any(path.is_relative_to(driver) for driver in DRIVERS)]
    modules = {str(path.relative_to(SOURCE)): asked_directly(path.read_text()) for path in paths}
    assert {module: names for module, names in modules.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("os.path.isdir(path)", {"os.path.isdir"}),
        ("os.path.basename(path)", set()),
        ("os.uname().machine", set()),
        ("from os import stat", {"os.stat"}),
        ("self._path.read_text()", {"self._path.read_text"}),
        ("(place / 'x').stat().st_size", {"(place / 'x').stat"}),
        ("from husk.runtime import sources\nsources.exists(path)", set()),
        ("open(path)", {"open"}),
        ("self._processes.open(pid)", set()),
    ],
)
def test_what_is_asked_directly_is_seen(line: str, found: set[str]) -> None:
    assert asked_directly(line) == found
