"""Archives of every dialect, for whoever reads them."""

import functools
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
SPARSE_FORMATS = ["gnu", "pax0.0", "pax0.1", "pax1.0"]
DIALECTS = ["ustar", "gnu", "pax", "global", *(f"sparse-{format}" for format in SPARSE_FORMATS)]


def write(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def member(name: str, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info


def sparse_archive(file: Path, format: str) -> bytes:
    """GNU tar's archive of a file with holes."""
    flags = ["--format=gnu"] if format == "gnu" else ["--format=pax", f"--sparse-version={format[3:]}"]
    command = ["tar", "c", "--sparse", "--hole-detection=raw", "-b1", *flags, "-C", str(file.parent), file.name]
    return subprocess.run(command, capture_output=True, check=True).stdout


@functools.cache
def archive_of(dialect: str) -> bytes:
    """A small archive with all that a dialect has: extensions, links, data with and without padding, its end mark."""
    if dialect.startswith("sparse-"):
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "sparse"
            with file.open("wb") as out:
                for index in range(6):
                    out.seek(index * 100_000)
                    out.write(b"data%d" % index)
                out.truncate(700_000)
            return _ended(sparse_archive(file, dialect.removeprefix("sparse-")))
    if dialect == "global":
        out_of = io.BytesIO()
        with tarfile.open(fileobj=out_of, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"uid": "77"}) as archive:
            archive.addfile(member("a"))
            archive.addfile(member("b", pax_headers={"mtime": "1.5"}))
        return _ended(out_of.getvalue())
    long = dialect != "ustar"
    made = write(
        (member("dir", type=tarfile.DIRTYPE), b""),
        (member("d/" * 80 + "x" if long else "x"), b"content" * 100),
        (member("whole"), b"y" * 512),
        (member("link", type=tarfile.SYMTYPE, linkname="l" * (200 if long else 20)), b""),
        (member("hard", type=tarfile.LNKTYPE, linkname="whole"), b""),
        (member("empty"), b""),
        format={"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}[dialect],
    )
    return _ended(made)


def _ended(archive: bytes) -> bytes:
    """With the two blocks of its end mark, and no more zeros behind them."""
    content = len(archive.rstrip(b"\0"))
    return archive[: content + -content % 512 + 1024]
