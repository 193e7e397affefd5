"""Docker's API as programs in Go use it, whose library is dockerd's own: how it agrees on a version, what it writes
for fields that nobody has set, how it takes a connection over, and which answers it makes errors of.

    api = GoClient(daemon)
    made = api.post("/containers/create?name=a", {"Image": "busybox"})
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote

from tests.support.client import Answer, Client
from tests.support.wire import RawClient, stream_of

# The newest version that the library knows.
NEWEST = (1, 51)
_UPGRADE = {"Connection": "Upgrade", "Upgrade": "tcp", "Content-Type": "application/json"}


class ApiError(Exception):
    """An answer of 400 and above, or 304, which the library makes an error of for some calls."""

    def __init__(self, answer: Answer) -> None:
        self.status = answer.status
        self.message = answer.message if answer.body else ""
        super().__init__(f"{self.status} {self.message}")


class GoClient:
    """One client, which has agreed on a version with the engine."""

    def __init__(self, engine: Client) -> None:
        self.engine = engine
        told = engine.http("HEAD", "/_ping")
        assert (told.status, told.body) == (200, b""), told
        theirs = tuple(map(int, told.headers["Api-Version"].split(".")))
        self.version = min(NEWEST, theirs)
        self.prefix = "/v" + ".".join(map(str, self.version))

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Answer:
        answer = self.engine.http(
            method, self.prefix + path, body, {"User-Agent": "Go-http-client/1.1", **(headers or {})}
        )
        if answer.status >= 400 or answer.status == 304:
            raise ApiError(answer)
        return answer

    def get(self, path: str) -> Any:
        return self.ask("GET", path).json()

    def post(self, path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        answer = self.ask("POST", path, body, headers)
        return answer.json() if answer.body else None

    def listed(self, filters: dict[str, list[str]] | None = None, *, all: bool = False) -> list[dict[str, Any]]:
        """Containers; the library writes filters as sets."""
        words = ["all=1"] * all
        words += [f"filters={quote(json.dumps(as_sets(filters)))}"] if filters else []
        return list(self.get("/containers/json" + "?" * bool(words) + "&".join(words)))

    def inspect(self, container: str) -> dict[str, Any]:
        return dict(self.get(f"/containers/{container}/json"))

    @contextmanager
    def stream(self, path: str, method: str = "GET") -> Iterator[HTTPResponse]:
        """An answer that is read as it comes."""
        connection = self.engine.connection()
        try:
            connection.request(method, self.prefix + path)
            yield connection.getresponse()
        finally:
            connection.close()

    @contextmanager
    def hijacked(self, path: str, body: object = None) -> Iterator[RawClient]:
        """A connection that is no HTTP any more."""
        sent = b"" if body is None else json.dumps(body).encode()
        with RawClient(self.engine.raw()) as line:
            line.request("POST", self.prefix + path, sent, _UPGRADE)
            head = line.head()
            assert head.status == 101, (head, line.read_to_end())
            yield line

    def logs(self, container: str, query: str) -> tuple[str, str]:
        """All that a container without a terminal has written: (stdout, stderr)."""
        with self.stream(f"/containers/{container}/logs?{query}") as answer:
            assert answer.status == 200, answer.read()
            data = answer.read()
        return stream_of(data, 1).decode(), stream_of(data, 2).decode()

    def waiting(self, container: str, condition: str = "not-running") -> "Wait":
        """Begin to wait; the engine has the request when this returns."""
        return Wait(self, container, condition)


class Wait:
    """A wait that goes on beside the test."""

    def __init__(self, api: GoClient, container: str, condition: str) -> None:
        self._connection = api.engine.connection()
        self._connection.request("POST", f"{api.prefix}/containers/{container}/wait?condition={condition}")
        # The head of the answer comes at once.
        self._answer = self._connection.getresponse()
        self._result: Any = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self._result = json.loads(self._answer.read())

    @property
    def ended(self) -> bool:
        return not self._reader.is_alive()

    def result(self) -> int:
        """The status with which the container has ended."""
        self._reader.join(60)
        assert self.ended, "the wait goes on"
        self._connection.close()
        return int(self._result["StatusCode"])


def as_sets(filters: dict[str, list[str]]) -> dict[str, dict[str, bool]]:
    return {name: dict.fromkeys(values, True) for name, values in filters.items()}


def config(**given: Any) -> dict[str, Any]:
    """A container's configuration with all that the library writes whether it was set or not."""
    return {
        "Hostname": "", "Domainname": "", "User": "", "AttachStdin": False, "AttachStdout": False,
        "AttachStderr": False, "Tty": False, "OpenStdin": False, "StdinOnce": False, "Env": None, "Cmd": None,
        "Image": "busybox:latest", "Volumes": None, "WorkingDir": "", "Entrypoint": None, "Labels": None, **given,
    }  # fmt: skip


def host_config(**given: Any) -> dict[str, Any]:
    """The same for the part that is about the host."""
    return {
        "Binds": None, "ContainerIDFile": "", "LogConfig": {"Type": "", "Config": None}, "NetworkMode": "",
        "PortBindings": None, "RestartPolicy": {"Name": "", "MaximumRetryCount": 0}, "AutoRemove": False,
        "VolumeDriver": "", "VolumesFrom": None, "ConsoleSize": [0, 0], "CapAdd": None, "CapDrop": None,
        "CgroupnsMode": "", "Dns": None, "DnsOptions": None, "DnsSearch": None, "ExtraHosts": None, "GroupAdd": None,
        "IpcMode": "", "Cgroup": "", "Links": None, "OomScoreAdj": 0, "PidMode": "", "Privileged": False,
        "PublishAllPorts": False, "ReadonlyRootfs": False, "SecurityOpt": None, "UTSMode": "", "UsernsMode": "",
        "ShmSize": 0, "Isolation": "", "CpuShares": 0, "Memory": 0, "NanoCpus": 0, "CgroupParent": "",
        "BlkioWeight": 0, "BlkioWeightDevice": None, "BlkioDeviceReadBps": None, "BlkioDeviceWriteBps": None,
        "BlkioDeviceReadIOps": None, "BlkioDeviceWriteIOps": None, "CpuPeriod": 0, "CpuQuota": 0,
        "CpuRealtimePeriod": 0, "CpuRealtimeRuntime": 0, "CpusetCpus": "", "CpusetMems": "", "Devices": None,
        "DeviceCgroupRules": None, "DeviceRequests": None, "MemoryReservation": 0, "MemorySwap": 0,
        "MemorySwappiness": None, "OomKillDisable": None, "PidsLimit": None, "Ulimits": None, "CpuCount": 0,
        "CpuPercent": 0, "IOMaximumIOps": 0, "IOMaximumBandwidth": 0, "MaskedPaths": None, "ReadonlyPaths": None,
        **given,
    }  # fmt: skip
