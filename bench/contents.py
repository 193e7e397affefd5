"""Contents of the image that the image benchmark moves around: three layers, the same on every run.

A Debian base (the files of this host's own required and important packages, so that programs run in it), many small
files, and one large file that compresses badly. `tree` puts the small files onto a disk, for copies into a container.
"""

import io
import os
import random
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

SMALL_FILES = "usr/lib/many"
_PRIORITIES = ("required", "important")
_LINKS = re.compile("bin|sbin|lib")


def debian_base() -> bytes:
    """This host's Debian without what was added to it."""
    listed = subprocess.run(["dpkg", "-L", *_base_packages()], capture_output=True, text=True, check=True).stdout
    # A package may say /bin/x and mean /usr/bin/x, to which /bin is a link.
    paths = {
        os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in listed.split("\n")
    }
    paths |= {f"/{name}" for name in os.listdir("/") if os.path.islink(f"/{name}") and _LINKS.match(name)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(paths):
            if path.strip("/") and os.path.lexists(path):
                tar.add(path, path.lstrip("/"), recursive=False)
    return out.getvalue()


def _base_packages() -> set[str]:
    """The required and important packages, and what they depend on."""
    fields = "${Package}\t${Priority}\t${Pre-Depends}, ${Depends}\n"
    listed = subprocess.run(["dpkg-query", "-W", "-f", fields], capture_output=True, text=True, check=True).stdout
    known = {name: (priority, needs) for name, priority, needs in (line.split("\t") for line in listed.splitlines())}
    found: set[str] = set()
    waiting = [name for name, (priority, _) in known.items() if priority in _PRIORITIES]
    while waiting:
        name = waiting.pop()
        if name in known and name not in found:
            found.add(name)
            waiting += re.findall(r"[a-z0-9][a-z0-9+.-]+", re.sub(r"\(.*?\)|:\w+", "", known[name][1]))
    return found


def small_files(count: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of files such as an interpreter's library has."""
    rng = random.Random(2)
    text = b"".join(b"def function_%d(argument):\n    return argument * %d\n" % (n, n) for n in range(400))
    for number in range(count):
        begin = rng.randrange(len(text) // 2)
        yield f"{SMALL_FILES}/p{number % 997}/m{number}.py", text[begin : begin + rng.randrange(100, 9000)]


def large_file(size: int) -> bytes:
    rng = random.Random(3)
    return b"".join(rng.randbytes(1_000_000) for _ in range(size // 1_000_000))


def archive(contents: Iterator[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    directories: set[str] = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, body in contents:
            for directory in reversed([str(parent) for parent in Path(name).parents][:-1]):
                if directory not in directories:
                    directories.add(directory)
                    entry = tarfile.TarInfo(directory)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(body), 0o644, 1_700_000_000
            tar.addfile(entry, io.BytesIO(body))
    return out.getvalue()


def tree(directory: Path, count: int) -> None:
    for name, body in small_files(count):
        path = directory / name.removeprefix(f"{SMALL_FILES}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
