"""Files that hand a one-time link to the person who may use it: whoever has the link has the engine.

What a daemon prints is read by all who read the journal, and a command's arguments by everybody on the host. So the
link is in a file that its owner alone reads.
"""

import contextlib
import html
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Below the daemon's exec-root.
NAME = "dashboard-link"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={link}">
<title>Husk</title>
<p><a href="{link}">Go on to the dashboard</a></p>
</html>
"""


def keep_link(path: Path, link: str) -> None:
    """Put a link into a file, in the place of an older one. OSError where it cannot be written."""
    _write(path, f"{link}\n")


@contextlib.contextmanager
def opening_page(link: str) -> Iterator[Path]:
    """A page that leads a browser of this user to a link, for as long as the context lasts."""
    runtime = os.environ.get("XDG_RUNTIME_DIR") or None
    with tempfile.TemporaryDirectory(prefix="husk-dashboard-", dir=runtime) as directory:
        page = Path(directory) / "open.html"
        _write(page, _PAGE.format(link=html.escape(link)))
        yield page


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(fresh, _FLAGS, 0o600), "w") as file:
            file.write(text)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
