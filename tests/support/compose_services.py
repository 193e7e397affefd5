"""Services for compose files, and what they answer on their ports."""

from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.waiting import until

# With an init, a container ends at once when it is told to: `sleep` as process 1 would ignore the signal.
SLEEPER = {"image": "busybox", "init": True, "command": "sleep 600"}


def healthy(script: str) -> dict[str, Any]:
    return {"test": script, "interval": "100ms", "start_period": "10s", "start_interval": "100ms", "retries": 20}


def server(text: str) -> dict[str, Any]:
    """A service that answers with `text` on port 80."""
    script = f"echo {text} > /tmp/index.html; exec httpd -f -p 80 -h /tmp"
    return {"image": "busybox", "init": True, "command": ["sh", "-c", script]}


def answer(port: int) -> str:
    """Return the answer of the server on a port; nothing while it is not there (yet)."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/", timeout=5) as response:
            return str(response.read().decode().strip())
    except (URLError, ConnectionError):
        return ""


def get(port: int) -> str:
    """Return the answer as soon as there is one: a published port is open before the server behind it."""
    return until(lambda: answer(port), f"port {port} answers")
