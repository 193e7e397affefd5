"""Script, style and pictures of the pages: read once, compressed once, and kept by browsers while they are the same.

Their paths have the digest of all of them in it, `/static/<digest>/live.js`: a new version is another path, and modules
import each other by their short names.
"""

import gzip
import hashlib
from pathlib import Path

from husk.api.http.request import Request
from husk.api.http.response import Response, fields

STATIC = Path(__file__).parent / "static"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_KEPT = "public, max-age=31536000, immutable"
# What is smaller is not worth it.
_WORTH_COMPRESSING = 512


class Assets:
    """All files below a directory."""

    def __init__(self, directory: Path = STATIC) -> None:
        self._files = {
            path.relative_to(directory).as_posix(): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file() and path.suffix in _KINDS
        }
        digest = hashlib.sha256()
        for name, data in self._files.items():
            digest.update(b"%b\0%d\0%b" % (name.encode(), len(data), data))
        self._root = f"/static/{digest.hexdigest()[:16]}/"
        self._compressed: dict[str, bytes] = {}

    def path(self, name: str) -> str:
        """Return the path under which browsers find a file; KeyError where there is none."""
        if name not in self._files:
            raise KeyError(name)
        return self._root + name

    def compressed(self, name: str) -> bytes:
        if name not in self._compressed:
            self._compressed[name] = gzip.compress(self._files[name], 9, mtime=0)
        return self._compressed[name]

    @property
    def names(self) -> list[str]:
        return list(self._files)

    def answer(self, request: Request, path: str, common: dict[str, str]) -> Response | None:
        """The file at a path; None where there is none."""
        name = path.removeprefix(self._root)
        if name == path or name not in self._files:
            return None
        data = self._files[name]
        headers = {
            **common,
            "Content-Type": _KINDS[Path(name).suffix],
            "Cache-Control": _KEPT,
            "Vary": "Accept-Encoding",
        }
        if "gzip" in request.header("accept-encoding") and len(data) > _WORTH_COMPRESSING:
            data = self.compressed(name)
            headers["Content-Encoding"] = "gzip"
        return Response(200, data, fields(headers))
