"""Archives for tests that copy files into containers, and what came out of them."""

import io
import tarfile


def file(
    name: str, content: bytes = b"", mode: int = 0o644, uid: int = 0, mtime: int = 5
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.uid, info.gid, info.mtime = len(content), mode, uid, uid, mtime
    return info, content


def special(name: str, kind: bytes, link: str = "", mode: int = 0o755, uid: int = 0) -> tuple[tarfile.TarInfo, bytes]:
    """A directory, a link, a device, a pipe."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.uid, info.gid, info.mtime = kind, link, mode, uid, uid, 5
    if kind == tarfile.CHRTYPE:
        info.devmajor, info.devminor = 1, 3
    return info, b""


def tar(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def entries(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: member for member in archive}


def content(data: bytes, name: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = archive.extractfile(name)
        assert found is not None
        return found.read()


def files_of(data: bytes) -> dict[str, bytes]:
    """Return the content of each file of an archive."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        regular = [member for member in archive if member.isreg()]
        return {member.name: found.read() for member in regular if (found := archive.extractfile(member)) is not None}
