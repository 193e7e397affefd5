"""Time of a start beside many networks and many published ports. Prints milliseconds, root needed.

    .venv/bin/python -m bench.network [--networks 100] [--ports 500] [--rounds 30]

The times are those of POST /containers/{id}/start for a container that ends at once, on a daemon of its own: on the
default bridge, on a user network, and with a published port; first on an empty host, then beside the crowd. Beside them
stands the processor time that the daemon itself takes for a whole life (create, start, wait, remove), which a busy
machine disturbs less.
"""

import time

from bench.engines import processor_time
from bench.sheet import Sheet
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


def measure(sheet: Sheet, daemon: Daemon, beside: str) -> None:
    rounds = sheet.options.rounds
    sheet.say(f"starts beside {beside}")
    for name, network, publish in (
        ("default bridge", "bridge", False),
        ("user network", "bench", False),
        ("published port", "bridge", True),
    ):
        before = processor_time(daemon.pid)
        times = [start(daemon, network, publish) for _ in range(rounds)]
        each = (processor_time(daemon.pid) - before) / rounds
        sheet.add("husk", f"start, {name}, beside", "ms", times, of=beside)
        sheet.add("husk", f"start, {name}, beside: processor of the whole life", "ms", each, of=beside)


def main() -> None:
    sheet = Sheet("network", __doc__)
    sheet.option("networks", 100, quick=10)
    sheet.option("ports", 500, quick=100)
    sheet.option("rounds", 30, quick=4)
    options = sheet.read()
    pools = '{"default-address-pools": [{"base": "10.128.0.0/10", "size": 24}]}'
    with Daemon() as daemon:
        settings = daemon.directory / "pools.json"
        settings.write_text(pools)
        daemon.stop()
        daemon.arguments = ("--config-file", str(settings), "--log-level", "warn")
        daemon.start()
        daemon.http("POST", "/networks/create", {"Name": "bench"})
        measure(sheet, daemon, "1 network, 0 ports")
        networks = f"{options.networks} networks"
        begin = time.perf_counter()
        for number in range(options.networks):
            answer = daemon.http("POST", "/networks/create", {"Name": f"crowd{number}"})
            assert answer.status == 201, answer.body
        each = (time.perf_counter() - begin) * 1000 / options.networks
        sheet.add("husk", "a network is made", "ms", each, of=networks)
        for number in range(options.ports // PORTS_PER_CONTAINER):
            ports: dict[str, list[dict[str, str]]] = {f"{8000 + port}/tcp": [{}] for port in range(PORTS_PER_CONTAINER)}
            body = {"Image": "busybox", "Cmd": ["sleep", "1000"], "HostConfig": {"PortBindings": ports}}
            daemon.http("POST", f"/containers/create?name=crowd{number}", body)
            assert daemon.http("POST", f"/containers/crowd{number}/start").status == 204
        measure(sheet, daemon, f"{networks}, {options.ports} ports")
        daemon.remove_containers()
        daemon.kill9()
        begin = time.perf_counter()
        daemon.start()
        sheet.add("husk", "the daemon starts again", "s", time.perf_counter() - begin, of=networks)
        begin = time.perf_counter()
        daemon.http("POST", "/networks/prune", timeout=600)
        each = (time.perf_counter() - begin) * 1000 / options.networks
        sheet.add("husk", "a network is removed", "ms", each, of=networks)
    sheet.finish()


if __name__ == "__main__":
    main()
