"""Cost of a client of etcd: ours beside etcd's JSON gateway and a library, against one member on the loopback.

    .venv/bin/python bench/etcd.py [--puts 2000] [--library PYTHON]

For each client, in a process of its own: the time and memory that importing it takes, puts of 1 KB (each a transaction
on the version of its record) one after the other and 16 at once, the processor time of one, the median from a put to
the news of it at a watch, and memory at the end. etcd's data is on /dev/shm, so that the disk plays no part.
`--library` is a Python that has `aetcd` (which brings grpcio). The gateway is asked with aiohttp.
"""

import argparse
import asyncio
import base64
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

BODY = json.dumps({"text": "x" * 1000}).encode()
AT_ONCE, LOOKS = 16, 200


class Client(Protocol):
    async def put(self, key: str, version: int | None) -> int:
        """Write it if it has that version; its new one."""
        ...

    def watch(self) -> AsyncIterator[str]:
        """The keys that are written from now on; first an empty one when the watch is there."""
        ...


class Ours:
    def __init__(self, host: str) -> None:
        from husk.swarm.state.etcd.store import EtcdStore
        from husk.swarm.state.transactions import Put

        self._store, self._put = EtcdStore.open(f"etcd://{host}"), Put

    async def put(self, key: str, version: int | None) -> int:
        return await self._store.commit(self._put("bench", key, BODY, version))

    async def watch(self) -> AsyncIterator[str]:
        async for news in self._store.watch("bench"):
            if news.all:
                yield ""
            for record in () if news.all else news.records:
                yield record.key


class Gateway:
    def __init__(self, host: str) -> None:
        import aiohttp

        self._session = aiohttp.ClientSession(f"http://{host}:2379")

    async def put(self, key: str, version: int | None) -> int:
        name, value = (base64.b64encode(data).decode() for data in (f"bench/{key}".encode(), BODY))
        compare = {"key": name, "target": "MOD", "result": "EQUAL", "mod_revision": version}
        put = {"request_put": {"key": name, "value": value}}
        request = {"compare": [compare] if version is not None else [], "success": [put]}
        async with self._session.post("/v3/kv/txn", json=request) as answer:
            found = await answer.json()
            assert found["succeeded"], found
            return int(found["header"]["revision"])

    async def watch(self) -> AsyncIterator[str]:
        first, behind = (base64.b64encode(data).decode() for data in (b"bench/", b"bench0"))
        request = {"create_request": {"key": first, "range_end": behind}}
        async with self._session.post("/v3/watch", json=request) as answer:
            while line := await answer.content.readline():
                result = json.loads(line)["result"]
                if result.get("created"):
                    yield ""
                for event in result.get("events", []):
                    yield base64.b64decode(event["kv"]["key"]).decode().removeprefix("bench/")


class Library:
    def __init__(self, host: str) -> None:
        aetcd = importlib.import_module("aetcd")  # no dependency of ours

        self._client = aetcd.Client(host=host, port=2379)

    async def put(self, key: str, version: int | None) -> int:
        # It does not tell the revision of a transaction, so the number of writes is what is compared.
        client, name = self._client, f"bench/{key}".encode()
        compare = [client.transactions.version(name) == version] if version is not None else []
        done, _ = await client.transaction(compare=compare, success=[client.transactions.put(name, BODY)], failure=[])
        assert done
        return version + 1 if version is not None else int((await client.get(name)).version)

    async def watch(self) -> AsyncIterator[str]:
        watching = await self._client.watch_prefix(b"bench/")
        yield ""
        async for event in watching:
            yield event.kv.key.decode().removeprefix("bench/")


CLIENTS: dict[str, Callable[[str], Client]] = {"husk": Ours, "gateway": Gateway, "library": Library}


def memory() -> float:
    """MiB of this process alone."""
    text = Path("/proc/self/smaps_rollup").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines()[1:])
    return sum(int(fields[name].split()[0]) for name in ("Private_Clean", "Private_Dirty")) / 1024


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(name: str, host: str, puts: int) -> dict[str, float]:
    before, begun = memory(), time.perf_counter()
    client = CLIENTS[name](host)
    await client.put("first", None)
    result = {"ready_ms": (time.perf_counter() - begun) * 1000, "ready_mib": memory() - before}
    version = await client.put("one", None)
    begun, used = time.perf_counter(), processor()
    for _ in range(puts):
        version = await client.put("one", version)
    result["puts_s"] = puts / (time.perf_counter() - begun)
    result["cpu_us"] = (processor() - used) / puts * 1e6

    async def many(number: int) -> None:
        version = await client.put(f"many-{number}", None)
        for _ in range(puts // AT_ONCE):
            version = await client.put(f"many-{number}", version)

    begun = time.perf_counter()
    await asyncio.gather(*map(many, range(AT_ONCE)))
    result["puts_s_16"] = puts / (time.perf_counter() - begun)
    result["watch_ms"] = await watching(client)
    result["end_mib"] = memory() - before
    return result


async def watching(client: Client) -> float:
    """The median of milliseconds from a put to the news of it."""
    came: dict[str, float] = {}
    ready = asyncio.Event()
    last = f"look-{LOOKS - 1}"

    async def read() -> None:
        async for key in client.watch():
            ready.set()
            came.setdefault(key, time.perf_counter())
            if key == last:
                return

    reader = asyncio.get_running_loop().create_task(read())
    await ready.wait()
    sent: dict[str, float] = {}
    for number in range(LOOKS):
        sent[f"look-{number}"] = time.perf_counter()
        await client.put(f"look-{number}", None)
        await asyncio.sleep(0.002)
    await reader
    return statistics.median(came[key] - sent[key] for key in sent) * 1000


async def alone(work: Callable[[], Awaitable[Any]]) -> None:
    print(json.dumps(await work()))
    sys.stdout.flush()
    # What libraries leave open is not what is measured.
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puts", type=int, default=2000)
    parser.add_argument("--library", help="a Python that has aetcd")
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--host", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        asyncio.run(alone(lambda: measure(arguments.client, arguments.host, arguments.puts)))
    from tests.support.etcd import Etcd

    columns = ("ready_ms", "ready_mib", "puts_s", "puts_s_16", "cpu_us", "watch_ms", "end_mib")
    print(f"{'client':8} " + " ".join(f"{column:>10}" for column in columns))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, Etcd(Path(directory)) as etcd:
        pythons = {"husk": sys.executable, "gateway": sys.executable, "library": arguments.library}
        for name, python in pythons.items():
            if python:
                command = [python, __file__, "--client", name, "--host", etcd.members[0].host]
                ran = subprocess.run([*command, "--puts", str(arguments.puts)], check=True, capture_output=True)
                found = json.loads(ran.stdout)
                print(f"{name:8} " + " ".join(f"{found[column]:10.1f}" for column in columns))


if __name__ == "__main__":
    main()
