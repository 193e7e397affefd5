"""A user's program under `mypy --strict`: what is right passes, and what is misspelt is found."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# Each line with a fault tells of it.
PROGRAM = """
import husk
from husk import ContainerOptions, HuskError


async def awaited(options: ContainerOptions) -> bytes:
    async with husk.connect("unix:///x") as engine, engine.container("busybox", **options) as box:
        result: husk.Result = await box.exec(["true"], timeout=5, check=True)
        await engine.run("busybox", memry="64m")  # call-arg
        await engine.containers.create("busybox", cpus="two")  # arg-type
        await engine.services.create("busybox", replica=2)  # call-arg
        async for entry in box.logs().entries(level="error"):
            print(entry.time, entry.text.upper())
        async for stats in engine.stats():
            print({name: each.cpu_percent for name, each in stats.items()})
        names: list[str] = [each.name for each in await box.files.list("/")]
        print(names, box.port(80).url, result.check().text)
        return box.name  # return-value


async def inside() -> None:
    async with husk.Engine.open(data_rot="/x") as engine:  # call-arg
        await engine.images.build(path=".", tagg="x")  # call-arg


def called() -> str:
    try:
        with husk.connect_sync() as engine, engine.container("busybox", network="none") as box:
            for line in box.execing("true").lines():
                print(line)
            box.files.write("/x", "y")
            engine.run("busybox", memry="64m")  # call-arg
            await_less: int = box.exec("true").text  # assignment
            with box.attach() as console:
                console.write("text")  # arg-type
            return [each.short_id for each in engine.containers.list()][0]
    except HuskError as error:
        return error.message


print(husk.run("busybox", "true", timeout=3).ok, husk.run("busybox", memry=1))  # call-arg
husk.nothing  # attr-defined
"""


def test_a_program_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    # With this tree's settings what `make check` has found before of the library is not found anew.
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110)
    found = re.findall(r"program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    lines = enumerate(PROGRAM.splitlines(), 1)
    assert found == [(str(number), line.partition("  # ")[2]) for number, line in lines if "  # " in line], done.stdout
    assert 'did you mean "memory"?' in done.stdout
