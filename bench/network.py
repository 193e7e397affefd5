"""Does a start cost the same with many networks and many published ports? Prints milliseconds, root needed.

    python bench/network.py [--networks 100] [--ports 500] [--rounds 30]

The times are those of POST /containers/{id}/start for a container that ends at once, on a daemon of its own: on the
default bridge, on a user network, and with a published port; first on an empty host, then beside the crowd. Beside them
stands the processor time that the daemon itself takes for a whole life (create, start, wait, remove), which a busy
machine disturbs less.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.daemon import Daemon

PORTS_PER_CONTAINER = 50


def start(daemon: Daemon, network: str, publish: bool) -> float:
    """Milliseconds that one start takes."""
    host_config: dict[str, object] = {"NetworkMode": network}
    if publish:
        host_config["PortBindings"] = {"80/tcp": [{}]}
    body = {"Image": "busybox", "Cmd": ["true"], "HostConfig": host_config}
    identity = daemon.http("POST", "/containers/create", body).json()["Id"]
    begin = time.perf_counter()
    answer = daemon.http("POST", f"/containers/{identity}/start")
    took = (time.perf_counter() - begin) * 1000
    assert answer.status == 204, answer.body
    daemon.http("POST", f"/containers/{identity}/wait")
    daemon.http("DELETE", f"/containers/{identity}?force=1")
    return took


def processor_time(pid: int) -> float:
    """Milliseconds of all the process's threads so far; the kernel has a clock for each process."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def measure(daemon: Daemon, rounds: int, label: str) -> None:
    for name, network, publish in (
        ("default bridge", "bridge", False),
        ("user network", "bench", False),
        ("published port", "bridge", True),
    ):
        before = processor_time(daemon.pid)
        times = sorted(start(daemon, network, publish) for _ in range(rounds))
        each = (processor_time(daemon.pid) - before) / rounds
        print(
            f"{label:28} {name:16} median {statistics.median(times):6.1f} ms   p90 {times[rounds * 9 // 10]:6.1f} ms"
            f"   daemon's processor time {each:5.1f} ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--ports", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    pools = '{"default-address-pools": [{"base": "10.128.0.0/10", "size": 24}]}'
    with Daemon() as daemon:
        settings = daemon.directory / "pools.json"
        settings.write_text(pools)
        daemon.stop()
        daemon.arguments = ("--config-file", str(settings), "--log-level", "warn")
        daemon.start()
        daemon.http("POST", "/networks/create", {"Name": "bench"})
        measure(daemon, arguments.rounds, "1 network, 0 ports")
        begin = time.perf_counter()
        for number in range(arguments.networks):
            answer = daemon.http("POST", "/networks/create", {"Name": f"crowd{number}"})
            assert answer.status == 201, answer.body
        each = (time.perf_counter() - begin) * 1000 / arguments.networks
        print(f"{arguments.networks} networks made, {each:.1f} ms each")
        for number in range(arguments.ports // PORTS_PER_CONTAINER):
            ports: dict[str, list[dict[str, str]]] = {f"{8000 + port}/tcp": [{}] for port in range(PORTS_PER_CONTAINER)}
            body = {"Image": "busybox", "Cmd": ["sleep", "1000"], "HostConfig": {"PortBindings": ports}}
            daemon.http("POST", f"/containers/create?name=crowd{number}", body)
            assert daemon.http("POST", f"/containers/crowd{number}/start").status == 204
        measure(daemon, arguments.rounds, f"{arguments.networks} networks, {arguments.ports} ports")
        daemon.remove_containers()
        daemon.kill9()
        begin = time.perf_counter()
        daemon.start()
        print(f"the daemon starts again with {arguments.networks} networks in {time.perf_counter() - begin:.2f} s")
        begin = time.perf_counter()
        daemon.http("POST", "/networks/prune", timeout=600)
        each = (time.perf_counter() - begin) * 1000 / arguments.networks
        print(f"{arguments.networks} networks removed, {each:.1f} ms each")


if __name__ == "__main__":
    main()
