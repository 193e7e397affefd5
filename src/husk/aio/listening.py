"""The file of a Unix socket belongs to whoever made it. From Python 3.13 on a server would remove it at its end, and
would not start where the file is not found by the path that the socket was bound to."""

import sys
from typing import Any

# For `create_unix_server` and `start_unix_server` with a socket of our own.
KEEP_FILE: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
