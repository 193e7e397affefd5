"""Time of the `husk` command: wall and processor time of several lines, beside docker's client.

    .venv/bin/python -m bench.command [--rounds 15] [--host unix:///run/husk.sock] [--beside SRC]

Lines are typed in turns, so that other work on the machine hits all of them alike; medians, and the least. `--beside`
is the `src` of another version of Husk. Without `--host` a daemon of this source is started for it, which needs root.
Modules are compiled first, as an installation does it.
"""

import compileall
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.engines import engines
from bench.sheet import Sheet

SOURCE = Path(__file__).parents[1] / "src"
LINES = ("--help", "run --help", "ps", "ps --all --format json", "images", "inspect --type network bridge")
# What the shell asks for behind `husk rm <TAB>`.
COMPLETION = {"_HUSK_COMPLETE": "bash_complete", "COMP_WORDS": "husk rm ", "COMP_CWORD": "2"}
ENTRY = "import sys; sys.argv[0] = 'husk'; from husk.cli import main; main()"


def timed(line: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds of wall and of processor time."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


@contextlib.contextmanager
def daemon() -> Iterator[str]:
    """The address of one of this source."""
    with engines(["husk"], network=False) as [husk]:
        yield f"unix://{husk.socket}"


def main() -> None:
    sheet = Sheet("command", __doc__)
    sheet.option("rounds", 15, quick=2)
    sheet.parser.add_argument("--host", default="")
    sheet.parser.add_argument("--beside", default="")
    given = sheet.read()
    sources = {"husk": str(SOURCE), **({"beside": given.beside} if given.beside else {})}
    for source in sources.values():
        compileall.compile_dir(source, quiet=2)
    with contextlib.nullcontext(given.host) if given.host else daemon() as host:
        measure(sheet, sources, host)
    sheet.finish()


def measure(sheet: Sheet, sources: dict[str, str], host: str) -> None:
    environment = {**os.environ, "HUSK_HOST": host, "DOCKER_HOST": host}
    runs: dict[tuple[str, str], tuple[list[str], dict[str, str]]] = {}
    for text in LINES:
        for name, source in sources.items():
            runs[text, name] = [sys.executable, "-c", ENTRY, *text.split()], {**environment, "PYTHONPATH": source}
        if docker := shutil.which("docker"):
            runs[text, "docker"] = [docker, *text.split()], environment
    for name, source in sources.items():
        line = [sys.executable, "-c", ENTRY]
        runs["rm <TAB>", name] = line, {**environment, **COMPLETION, "PYTHONPATH": source}
    runs["an empty program", "python"] = [sys.executable, "-c", "pass"], environment
    found: dict[tuple[str, str], list[tuple[float, float]]] = {run: [] for run in runs}
    for number in range(sheet.options.rounds):
        sheet.say(f"round {number + 1} of {sheet.options.rounds}")
        for run, (line, said) in runs.items():
            found[run].append(timed(line, said))
    for (text, name), times in found.items():
        wall, processor = zip(*times, strict=True)
        sheet.add(name, f"`{text}`", "ms", wall)
        sheet.add(name, f"`{text}`: processor", "ms", processor)


if __name__ == "__main__":
    main()
