"""The engine decides and records; what happens on the host is done by drivers. Held here, by reading the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import husk.engine

ENGINE = Path(husk.engine.__file__).parent

# Facts about this process and this machine, and pure functions; everything else of `os` is asked of a driver.
FACTS = {
    "os.path", "os.cpu_count", "os.getpid", "os.urandom", "os.uname", "os.sched_getaffinity", "os.sysconf",
    "socket.gethostname",
}  # fmt: skip
ASKED_OF_DRIVERS = ("os", "shutil", "ctypes", "subprocess", "socket", "signal.pidfd_send_signal", "mmap", "fcntl")


def used(tree: ast.AST) -> Iterator[str]:
    """Every `module.name` of a module that only drivers may use, and what is imported from one by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def asked_directly(path: Path) -> set[str]:
    return {
        name
        for name in used(ast.parse(path.read_text()))
        if name not in FACTS and (name.partition(".")[0] in ASKED_OF_DRIVERS or name in ASKED_OF_DRIVERS)
    }


def test_no_module_of_the_engine_calls_the_system() -> None:
    found = {str(path.relative_to(ENGINE)): names for path in ENGINE.rglob("*.py") if (names := asked_directly(path))}
    assert found == {}
