"""The headers of a tar, without contents: by their digest two who know the same files know whether their tars are one.

One packs files while they come from a client, of what the client has told of them
(`husk.builder.store.sync.pack_ahead`). The other one copies those files, and knows what the copies look like. Contents
are what has come, for both.
"""

import hashlib
import os
import stat
from collections.abc import Callable

from husk.kernel.trees import walk
from husk.storage.tar.members import Output, TarWriter
from husk.storage.tar.whiteouts import is_overlay_xattr

_LONGEST_PATH = 4096
_SIMPLE = frozenset((stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO))


class Heads:
    """The output for headers, which are hashed and may be passed on; contents are not written here."""

    def __init__(self, out: Output | None = None) -> None:
        self._hash = hashlib.sha256()
        self._out = out

    def write(self, data: bytes, /) -> None:
        self._hash.update(data)
        if self._out is not None:
            self._out.write(data)

    def flush(self) -> None:
        pass

    def digest(self) -> str:
        return self._hash.hexdigest()


def heads_of_tree(path: str, source: int, foreseen: Callable[[os.stat_result], os.stat_result]) -> str:
    """The digest of the headers of all that is in the open directory `source`, below `path`; "" if it is not simple.

    `foreseen` tells what a copy of a file will look like. The current directory is another one afterwards.
    """
    heads = Heads()
    members = TarWriter(heads)
    top = f"{path}/" if path else ""
    for found in walk(source, os.fchdir):
        status, name, shown = found.status, os.fsencode(found.name), top + found.path
        kind = stat.S_IFMT(status.st_mode)
        simple = kind in _SIMPLE and (kind == stat.S_IFDIR or status.st_nlink == 1) and len(shown) <= _LONGEST_PATH
        if not simple or not all(map(is_overlay_xattr, os.listxattr(name, follow_symlinks=False))):
            return ""
        if kind == stat.S_IFREG:
            members.add_pieces(shown, (), foreseen(status))  # the header tells how much it is
        else:
            members.add(shown, name, foreseen(status))
    return heads.digest()
