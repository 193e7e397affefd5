"""Time of the dashboard's pages beside many containers.

    sudo .venv/bin/python -m bench.dashboard [--containers 300] [--running 30] [--rounds 50] [--profile]

A daemon with `--dashboard`, with containers in Compose projects of ten, some of them running. Each page is asked for on
a new connection and read to its end, one after the other, in turns; `--profile` tells which functions take the time, by
a dashboard in a process of its own. Beside them stands what `GET /containers/json?all=1` takes: pages are made of it.
`processor` is what the daemon, with the dashboard in it, used meanwhile, also for others.
"""

import contextlib
import pstats
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.engines import processor_time
from bench.sheet import Sheet
from tests.support.daemon import Daemon
from tests.support.dashboard import Browser, links
from tests.support.waiting import until

PAGES = (
    "/containers", "/containers/c0", "/containers/c0/stats", "/images", "/volumes", "/networks", "/networks/bridge",
    "/disk", "/events", "/health",
)  # fmt: skip
PROJECT = 10


def fill(daemon: Daemon, count: int, running: int) -> None:
    """Make the containers, and start the first of them."""

    def one(number: int) -> None:
        project, service = f"shop{number // PROJECT}", ("web", "worker", "db")[number % 3]
        labels = {"com.docker.compose.project": project, "com.docker.compose.service": service}
        body = {"Image": "busybox", "Cmd": ["sleep", "3600"], "Labels": labels, "HostConfig": {"NetworkMode": "bridge"}}
        answer = daemon.http("POST", f"/containers/create?name=c{number}", body)
        assert answer.status == 201, answer.body
        if number < running:
            assert daemon.http("POST", f"/containers/c{number}/start").status == 204

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(count)))


def measure(sheet: Sheet, daemon: Daemon, browser: Browser) -> None:
    options = sheet.options
    of = f"{options.containers} containers"

    asked = {f"page {path}": partial(browser.get, path) for path in PAGES}
    listing = "/containers/json?all=1"
    times: dict[str, list[float]] = {what: [] for what in (*asked, f"GET {listing}")}
    used: dict[str, list[float]] = {what: [] for what in asked}
    for number in range(options.rounds + 1):
        if number % 10 == 0:
            sheet.say(f"round {number} of {options.rounds}")
        for what, ask in asked.items():
            before, begun = processor_time(daemon.pid), time.perf_counter()
            status = ask().status
            times[what].append((time.perf_counter() - begun) * 1e3)
            used[what].append(processor_time(daemon.pid) - before)
            assert status == 200, (what, status)
        begun = time.perf_counter()
        daemon.http("GET", listing)
        times[f"GET {listing}"].append((time.perf_counter() - begun) * 1e3)
    for what, taken in times.items():
        sheet.add("husk", f"{what}: the first time", "ms", taken[0], of=of)
        sheet.add("husk", what, "ms", taken[1:], of=of)
        if what in used:
            sheet.add("husk", f"{what}: processor", "ms", used[what][1:], of=of)
        sheet.add("husk", f"{what}: p99", "ms", sorted(taken[1:])[int(options.rounds * 0.99)], of=of)


@contextlib.contextmanager
def profiled(daemon: Daemon, file: Path) -> Iterator[Browser]:
    """The dashboard of a process of its own, whose profile is written at the end."""
    watched = [sys.executable, "-u", "-m", "cProfile", "-o", str(file), "-m", "husk"]
    line = [*watched, "-H", daemon.host, "dashboard", "--no-open"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+/sign-in\S+", line)))
        try:
            yield Browser(said)
        finally:
            process.send_signal(signal.SIGINT)


def main() -> None:
    sheet = Sheet("dashboard", __doc__)
    sheet.option("containers", 300, quick=60)
    sheet.option("running", 30, quick=6)
    sheet.option("rounds", 50, quick=5)
    sheet.parser.add_argument("--profile", action="store_true", help="tell which functions take the time")
    options = sheet.read()
    with Daemon("--dashboard", "127.0.0.1:0", "--log-level", "warn") as daemon:
        sheet.say(f"making {options.containers} containers")
        fill(daemon, options.containers, options.running)
        if options.profile:
            with tempfile.NamedTemporaryFile(prefix="hkb-profile-") as file:
                with profiled(daemon, Path(file.name)) as browser:
                    browser.sign_in()
                    measure(sheet, daemon, browser)
                pstats.Stats(file.name).sort_stats("tottime").print_stats(30)
        else:
            browser = Browser(until(lambda: links(daemon), "the link of the dashboard")[0])
            browser.sign_in()
            measure(sheet, daemon, browser)
    sheet.finish()


if __name__ == "__main__":
    main()
