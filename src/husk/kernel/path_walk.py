"""The walk of a path through a tree that is the whole world: part by part, along links, never above its root.

Whoever walks looks at each part, or makes it, and says where it leads if it is a link.
"""

import errno
import os
from collections.abc import Callable

# What is above a part, its name, and whether it is the last one; where a link leads, None for whatever is none.
Look = Callable[[list[str], str, bool], str | None]


def walk(path: str, look: Look, most_links: int) -> list[str]:
    """The parts of where `path` leads, without links and `..`. ELOOP where more links follow each other than that."""
    todo = _parts(path)
    done: list[str] = []
    links = 0
    while todo:
        name = todo.pop()
        if name == "..":
            del done[-1:]
            continue
        target = look(done, name, not todo)
        if target is None:
            done.append(name)
            continue
        links += 1
        if links > most_links:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            done = []
        todo += _parts(target)
    return done


def _parts(path: str) -> list[str]:
    """The last one first."""
    return [part for part in path.split("/") if part not in ("", ".")][::-1]
