"""The processes of a container: the host's `ps` with the client's own options, and of its lines the container's.

`ps` runs on the host, as with dockerd, so that it works in images without one; process ids are the host's.
"""

import asyncio
from collections.abc import Callable, Collection

from msgspec import Struct

from husk.engine.containers.index import ContainerIndex
from husk.engine.model.container import Container
from husk.errors import Conflict, InvalidParameter, SystemFault
from husk.runtime import process
from husk.runtime.assembly import cgroup
from husk.runtime.assembly.paths import Paths
from husk.text.digits import read_number
from husk.text.patterns import pattern

DEFAULT_ARGUMENTS = "-ef"
_LONGEST = 1000
_TIMEOUT = 20.0
# `-o cmd=PID` would make another column look like the one we filter by.
_FALSE_PID = pattern(r"\s(\S*)=\s*(PID\S*)")
_BLANKS = pattern(r"[\t\v\f\r ]+")


class ProcessTable(Struct, frozen=True):
    titles: list[str]
    processes: list[list[str]]


class Top:
    def __init__(self, index: ContainerIndex, paths: Paths, publish: Callable[[Container, str], None]) -> None:
        self._index = index
        self._paths = paths
        self._publish = publish

    async def top(self, reference: str, arguments: str) -> ProcessTable:
        words = check(arguments or DEFAULT_ARGUMENTS)
        instance = self._index.find(reference)
        record = instance.record
        running = await instance.runs()
        if record.state.status == "restarting":
            raise Conflict(f"Container {record.id} is restarting, wait until the container is running")
        if not running:
            raise Conflict(f"container {record.id} is not running")
        group = self._paths.cgroup(record.id, record.host_config.cgroup_parent)
        pids = await asyncio.to_thread(cgroup.processes, group)
        # Some options (such as `f`) cannot be used together with -q: then ps tells of all, and we choose.
        chosen = [f"-q{','.join(str(pid) for pid in sorted(pids))}"] if pids else []
        done = await process.run(["ps", *words, *chosen], timeout=_TIMEOUT)
        if done.returncode != 0:
            done = await process.run(["ps", *words], timeout=_TIMEOUT)
        if done.returncode != 0:
            reason = done.stderr.decode(errors="replace").partition("\n")[0] or f"exit status {done.returncode}"
            raise SystemFault(f"ps: {reason}")
        table = parse(done.stdout.decode(errors="replace"), pids)
        self._publish(record, "top")
        return table


def check(arguments: str) -> list[str]:
    """The words for `ps`; what would hide the column of process ids is refused."""
    if len(arguments) > _LONGEST or not arguments.isprintable():
        raise InvalidParameter("invalid ps arguments: expected at most 1000 printable characters")
    for name, value in _FALSE_PID.findall(" " + arguments):
        if name != "pid":
            raise InvalidParameter(f'specifying "{name}={value}" is not allowed')
    return arguments.split(" ")


def parse(text: str, pids: Collection[int]) -> ProcessTable:
    """The lines of `ps` that belong to `pids`; those of a process' threads, whose id is `-`, go with it."""
    first, *lines = text.split("\n")
    titles = _fields(first)
    if "PID" not in titles:
        raise SystemFault("Couldn't find PID field in ps output")
    column = titles.index("PID")
    chosen = []
    belongs = False
    for line in lines:
        fields = _fields(line)
        if not fields:
            continue
        if len(fields) <= column:
            raise SystemFault(f"Unexpected line in ps output: {line!r}")
        if fields[column] != "-":
            if (pid := read_number(fields[column])) is None:
                raise SystemFault(f"Unexpected pid '{fields[column]}' in ps output")
            belongs = pid in pids
        if belongs:
            last = len(titles) - 1
            chosen.append([*fields[:last], " ".join(fields[last:])])
    return ProcessTable(titles, chosen)


def _fields(line: str) -> list[str]:
    """Split at blanks of ASCII only: a command line may hold others."""
    return [word for word in _BLANKS.split(line) if word]
