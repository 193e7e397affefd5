"""Cost of one more container beside many on one bridge, and the time that many take to go.

    .venv/bin/python -m bench.crowd [--engines husk] [--few 10] [--many 1000] [--rounds 15] [--volume] [--bind]

Runs `--few` containers of `sleep` on the default bridge and measures create, start and forced removal of one more, then
the same beside `--many`; with `--volume` the one more has a volume and shareable memory, with `--bind` a directory of
the host. Prints medians of wall time and the best start, the processor time of the engine's processes as a mean over
all rounds (of those that are still there the kernel tells it in steps of 10 ms; its own threads are not in it), the
memory (PSS of the daemon and of all its processes for containers) that each container costs, and how long it takes
until all are removed: by 16 API clients at once (DELETE with force), or by one `docker rm -f` with all ids (`--by
docker`). On a machine that others use the ratio of processor times tells more than that of wall times. Needs root; a
Linux bridge takes 1,023 containers at most.
"""

import itertools
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from bench.engines import IMAGE, Engine, UnixConnection
from bench.sheet import Sheet

API = "/v1.40"
CLIENTS = 16
VOLUME = {"Binds": ["bench:/bench"], "IpcMode": "shareable"}
BIND = {"Binds": ["/usr/share:/bench:ro"]}


def create(connection: UnixConnection, more: dict[str, object] | None = None) -> str:
    wish: dict[str, object] = {"NetworkMode": "bridge", "Init": False, **(more or {})}
    body = {"Image": IMAGE, "Cmd": ["sleep", "86400"], "HostConfig": wish}
    return str(connection.call("POST", f"{API}/containers/create", body)[1]["Id"])


def fill(engine: Engine, count: int) -> float:
    """Let `count` containers run; the seconds that the missing ones took."""

    def one(_: int) -> None:
        connection = engine.connection()
        connection.call("POST", f"{API}/containers/{create(connection)}/start")
        connection.close()

    running = len(engine.connection().call("GET", f"{API}/containers/json")[1])
    begin = time.perf_counter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(running, count)))
    return time.perf_counter() - begin


def one_more(engine: Engine, rounds: int, pause: float, more: dict[str, object]) -> list[list[float]]:
    """Milliseconds of create, start, and forced removal of one more, per round; and of processor time for all three."""
    found = []
    connection = engine.connection()
    for number in range(rounds + 2):
        before = engine.cpu()
        marks = [time.perf_counter()]
        container = create(connection, more)
        marks.append(time.perf_counter())
        connection.call("POST", f"{API}/containers/{container}/start")
        marks.append(time.perf_counter())
        connection.call("DELETE", f"{API}/containers/{container}?force=1")
        marks.append(time.perf_counter())
        steps = [(after - begin) * 1e3 for begin, after in itertools.pairwise(marks)]
        if number >= 2:
            found.append([*steps, (engine.cpu() - before) * 1e3])
        # What goes on in the background after a removal is not part of the next start; beside many it takes longer.
        time.sleep(pause)
    return found


def remove_all(engine: Engine, by: str) -> float:
    """Seconds until none is left."""
    ids = [container["Id"] for container in engine.connection().call("GET", f"{API}/containers/json?all=1")[1]]
    begin = time.perf_counter()
    if by == "docker":
        engine.docker("rm", "-f", *ids)
    else:

        def remove(share: list[str]) -> None:
            connection = engine.connection()
            for container in share:
                connection.call("DELETE", f"{API}/containers/{container}?force=1")

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(remove, [ids[number::CLIENTS] for number in range(CLIENTS)]))
    return time.perf_counter() - begin


def measure(sheet: Sheet, engine: Engine) -> None:
    """All of it for one engine, which is running."""
    options = sheet.options
    starts, costs, memory = {}, {}, {}
    for count in (options.few, options.many):
        of = f"{count:,} containers"
        sheet.say(f"{engine.name}, {of}")
        seconds = fill(engine, count)
        memory[count] = engine.pss()
        made, started, removed, cpu = zip(*one_more(engine, options.rounds, options.pause, options.more), strict=True)
        starts[count], costs[count] = statistics.median(started), statistics.fmean(cpu)
        for verb, taken in (
            ("create", made),
            ("start", started),
            ("removal", removed),
            ("processor of all three", costs[count]),
        ):
            sheet.add(engine, f"{verb} of one more beside", "ms", taken, of=of)
        sheet.add(engine, "memory of all processes with", "MiB", memory[count], of=of)
        sheet.add(engine, "until they ran, 8 clients", "s", seconds, of=of)
    each = (memory[options.many] - memory[options.few]) / (options.many - options.few)
    sheet.add(
        engine, "a start beside many takes so many times as long", "x", starts[options.many] / starts[options.few]
    )
    if costs[options.few]:
        ratio = costs[options.many] / costs[options.few]
        sheet.add(engine, "all three beside many take so many times the processor time", "x", ratio)
    sheet.add(engine, "memory of one container", "MiB", each)
    before = engine.cpu()
    way = f"{CLIENTS} API clients" if options.by == "api" else "one docker rm -f"
    sheet.add(engine, f"removal by {way}", "s", remove_all(engine, options.by), of=f"{options.many:,} containers")
    sheet.add(engine, f"removal by {way}: processor", "s", engine.cpu() - before, of=f"{options.many:,} containers")


def main() -> None:
    sheet = Sheet("crowd", __doc__, engines="husk,dockerd-new")
    sheet.option("few", 10, quick=2)
    sheet.option("many", 1000, quick=6)
    sheet.option("rounds", 15, quick=1)
    sheet.option("pause", 0.5, quick=0.05, about="seconds between two")
    sheet.parser.add_argument("--volume", dest="more", action="store_const", const=VOLUME, default={})
    sheet.parser.add_argument("--bind", dest="more", action="store_const", const=BIND)
    sheet.parser.add_argument("--by", choices=("api", "docker"), default="api")
    sheet.read()
    for name in sheet.wanted:
        with sheet.running(name) as [engine]:
            measure(sheet, engine)
    sheet.finish()


if __name__ == "__main__":
    main()
