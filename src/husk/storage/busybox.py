"""A root file system made from the host's own static busybox, as an archive."""

import io
import os
import shutil
import tarfile

from husk.kernel import process

_DIRECTORIES = {"bin": 0o755, "dev": 0o755, "etc": 0o755, "home": 0o755, "root": 0o700, "tmp": 0o1777, "usr": 0o755,
                "usr/bin": 0o755, "usr/sbin": 0o755, "var": 0o755, "var/www": 0o755}  # fmt: skip
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\n"
    "www-data:x:33:33:www-data:/var/www:/bin/false\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
    "etc/group": "root:x:0:\ndaemon:x:1:\nwww-data:x:33:\nusers:x:100:\nnobody:x:65534:\n",
}


async def root_file_system() -> bytes | None:
    """None if the host has no busybox."""
    program = shutil.which("busybox")
    if program is None:
        return None
    listed = await process.run([program, "--list"])
    applets = [name for name in listed.stdout.decode().split() if name.isascii() and "/" not in name]
    return archive(program, applets)


def archive(program: str, applets: list[str]) -> bytes:
    """A root file system with one program under many names."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, mode in _DIRECTORIES.items():
            tar.addfile(_entry(name, tarfile.DIRTYPE, mode))
        for name, text in _FILES.items():
            _add_file(tar, name, text.encode(), 0o644)
        with open(os.path.realpath(program), "rb") as file:
            _add_file(tar, "bin/busybox", file.read(), 0o755)
        for applet in applets:
            if applet != "busybox":
                link = _entry(f"bin/{applet}", tarfile.LNKTYPE, 0o755)
                link.linkname = "bin/busybox"
                tar.addfile(link)
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry


def _add_file(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = _entry(name, tarfile.REGTYPE, mode)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))
