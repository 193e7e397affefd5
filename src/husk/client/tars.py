"""Files as the API carries them: in tar archives. Pure, but for reading what is named of the host."""

import io
import tarfile
import time
from pathlib import Path, PurePosixPath

from husk.errors import InvalidParameter


def one_file(path: str, data: bytes | str, *, mode: int = 0o644, owner: tuple[int, int] = (0, 0)) -> bytes:
    """An archive, for the root directory, of one file at an absolute path."""
    place = PurePosixPath(path)
    if not place.is_absolute() or ".." in place.parts or place == PurePosixPath("/"):
        raise InvalidParameter(f"not the absolute path of a file: {path!r}")
    content = data.encode() if isinstance(data, str) else data
    entry = tarfile.TarInfo(str(place.relative_to("/")))
    entry.size, entry.mode, entry.mtime = len(content), mode, int(time.time())
    entry.uid, entry.gid = owner
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def tree(source: Path, name: str) -> bytes:
    """An archive of a file or directory of the host under another name."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.add(source, name)
    return whole.getvalue()


def only_file(archive: bytes, path: str) -> bytes:
    """The content of the one file in an archive; InvalidParameter where it is none."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as entries:
        entry = entries.next()
        content = entries.extractfile(entry) if entry is not None and entry.isreg() else None
        if content is None:
            raise InvalidParameter(f"{path} is not a regular file: use get_archive")
        return content.read()
