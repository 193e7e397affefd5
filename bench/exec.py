"""How long does an exec take? Create, start (attached, to its end) and inspect of `true` in a running container.

    sudo python bench/exec.py unix:///run/husk.sock unix:///run/docker.sock

Each host needs the image busybox. The rounds of all hosts alternate, so that a busy machine slows all of them alike.
"""

import http.client
import json
import socket
import statistics
import sys
import time

ROUNDS = 50
STREAM = {"Connection": "Upgrade", "Upgrade": "tcp"}


class Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Host:
    def __init__(self, address: str) -> None:
        self.address = address
        self._path = address.removeprefix("unix://")
        self._api = Connection(self._path)
        container = {"Image": "busybox", "Cmd": ["sleep", "3600"]}
        self._id = str(self.call("POST", "/containers/create", container)["Id"])
        self.call("POST", f"/containers/{self._id}/start")

    def call(self, method: str, path: str, body: object = None) -> dict[str, object]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self._api.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self._api.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{self.address}: {method} {path}: {answer.status} {text.decode()}")
        return dict(json.loads(text)) if text else {}

    def exec_true(self) -> float:
        begun = time.perf_counter()
        wish = {"Cmd": ["true"], "AttachStdout": True, "AttachStderr": True}
        made = self.call("POST", f"/containers/{self._id}/exec", wish)["Id"]
        stream = Connection(self._path)
        stream.request("POST", f"/exec/{made}/start", "{}", {"Content-Type": "application/json", **STREAM})
        while stream.sock.recv(65536):
            pass
        stream.close()
        if self.call("GET", f"/exec/{made}/json")["ExitCode"] != 0:
            raise SystemExit(f"{self.address}: the exec failed")
        return (time.perf_counter() - begun) * 1000

    def close(self) -> None:
        self.call("DELETE", f"/containers/{self._id}?force=1")


def main() -> None:
    hosts = [Host(address) for address in sys.argv[1:] or ["unix:///run/husk.sock"]]
    times: dict[str, list[float]] = {host.address: [] for host in hosts}
    for _ in range(ROUNDS):
        for host in hosts:
            times[host.address].append(host.exec_true())
    for host in hosts:
        host.close()
        taken = sorted(times[host.address])
        slow = taken[int(len(taken) * 0.95)]
        print(f"{host.address}: median {statistics.median(taken):.1f} ms, best {taken[0]:.1f}, p95 {slow:.1f}")


if __name__ == "__main__":
    main()
