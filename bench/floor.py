"""Cost of a run of the sandbox without Husk: crun alone with the bundle of examples/sandbox.py, part by part.

    sudo .venv/bin/python -m bench.floor [--runs 20] [--rounds 5]

Processor time of `crun run` of `true`, and of the same without one part: its filter of system calls, control groups,
network namespace, masked paths, mounts. `compiled by crun` is a bundle with a readable filter only, `with the profile`
one with both, as it was until crun got the compiled one alone. Parts are measured in turns, since others may be busy.
"""

import asyncio
import copy
import json
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.sheet import Sheet
from examples.sandbox import Sandbox
from husk import Engine
from husk.kernel import cgroups, process
from husk.runtime.process import which
from husk.runtime.seccomp import default_profile

Document = dict[str, Any]
CGROUP = "/hk-floor"
DISABLED = ["--cgroup-manager", "disabled"]


async def bundle_of_sandbox(directory: Path) -> Document:
    """Return the configuration that crun is given for a snippet; its root is copied."""
    async with Engine.open(data_root=directory / "data", exec_root=directory / "run", bridge="none") as engine:
        spec = replace(Sandbox(engine)._spec, command=["sleep", "1000"], stop_signal="SIGKILL")
        async with engine.container(spec):
            [file] = (directory / "run" / "containers").glob("*/config.json")
            document: Document = json.loads(file.read_bytes())
            shutil.copytree(document["root"]["path"], directory / "root", symlinks=True)
    return document


def settled(document: Document, directory: Path) -> Document:
    """The same for a container that is run again and again."""
    document["root"]["path"] = str(directory / "root")
    document["process"]["args"] = ["true"]
    document["linux"]["cgroupsPath"] = f"{CGROUP}/one"
    for mount in document["mounts"]:
        if mount["type"] == "bind":
            mount["source"] = str(directory / Path(mount["destination"]).name)
            Path(mount["source"]).touch()
    return document


def profile() -> Document:
    found = default_profile.profile((), os.uname().machine)
    assert found is not None, "no filter for this machine"
    return dict(found)


def variants(whole: Document) -> Iterator[tuple[str, Document, list[str]]]:
    def without(change: Callable[[Document], object]) -> Document:
        document = copy.deepcopy(whole)
        change(document)
        return document

    yield "as it is", whole, []
    yield "with the profile", without(lambda d: d["linux"].update(seccomp=profile())), []
    yield "compiled by crun", without(lambda d: (d["linux"].update(seccomp=profile()), d.pop("annotations"))), []
    yield "without a filter", without(lambda d: (d["linux"].pop("seccomp"), d.pop("annotations"))), []
    yield "without control groups", whole, DISABLED
    yield "without a network namespace", without(no_network), []
    yield "without masked paths", without(lambda d: d["linux"].update(maskedPaths=[], readonlyPaths=[])), []
    yield "with /proc and /dev alone", without(few_mounts), []


def no_network(document: Document) -> None:
    linux = document["linux"]
    linux["namespaces"] = [one for one in linux["namespaces"] if one["type"] != "network"]
    linux.pop("sysctl", None)


def few_mounts(document: Document) -> None:
    document["mounts"] = [mount for mount in document["mounts"] if mount["destination"] in ("/proc", "/dev")]


def used(argv: list[str], runs: int) -> float:
    """Milliseconds of processor time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    for _ in range(runs):
        pid = os.posix_spawn(argv[0], argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, file_actions=null)
        _, status = os.waitpid(pid, 0)
        assert status == 0, f"{argv} ended with {status}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / runs * 1e3


def measure(sheet: Sheet, directory: Path) -> None:
    program = which("crun")
    assert program is not None, "crun is not installed"
    sealed = f"/proc/{os.getpid()}/fd/{process.sealed_copy(program)}"
    whole = settled(asyncio.run(bundle_of_sandbox(directory)), directory)
    figures: dict[str, list[float]] = {}
    bundle = directory / "bundle"
    bundle.mkdir()
    for number in range(sheet.options.rounds):
        sheet.say(f"round {number + 1} of {sheet.options.rounds}")
        for name, document, words in variants(whole):
            (bundle / "config.json").write_text(json.dumps(document, separators=(",", ":")))
            argv = [sealed, *words, "--root", str(directory / "state"), "run", "--bundle", str(bundle), "hk-floor"]
            figures.setdefault(f"crun run, {name}", []).append(used(argv, sheet.options.runs))
        figures.setdefault("crun --version", []).append(used([sealed, "--version"], sheet.options.runs))
        figures.setdefault("true", []).append(used(["/bin/true"], sheet.options.runs))
        if monitor := which("conmon"):
            figures.setdefault("conmon --version", []).append(used([monitor, "--version"], sheet.options.runs))
    for name, times in figures.items():
        sheet.add("alone", name, "ms", times)


def main() -> None:
    sheet = Sheet("floor", __doc__)
    sheet.option("runs", 20, quick=5)
    sheet.option("rounds", 5, quick=2)
    sheet.read()
    with tempfile.TemporaryDirectory(prefix="hk-", dir="/tmp") as directory:
        try:
            measure(sheet, Path(directory))
        finally:
            cgroups.remove(CGROUP)
    sheet.finish()


if __name__ == "__main__":
    main()
