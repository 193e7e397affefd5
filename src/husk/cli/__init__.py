"""The `husk` command: the daemon (serve, doctor), and a client for whoever has no docker client (run, ps, …).

Commands import what they need when they run, so that each answers at once, and a daemon whose flags are plain starts
without click. Those of the client use the library's face (`husk.client`) and nothing else of Husk.
"""

import gc
import os
import sys

from husk.cli.kit.words import visible
from husk.errors import HuskError


def main() -> None:
    """Entry point: errors that the user can mend are one line, not a traceback. A link called `dockerd` is one."""
    name = os.path.basename(sys.argv[0])
    try:
        if name == "dockerd":
            _serve(sys.argv[1:], as_dockerd=True)
        elif sys.argv[1:2] == ["serve"]:
            _serve(sys.argv[2:], as_dockerd=False)
        else:
            _ask_click()
    except HuskError as error:
        print(f"{name if name == 'dockerd' else 'husk'}: {visible(error.message)}", file=sys.stderr)
        sys.exit(1)


def _serve(arguments: list[str], as_dockerd: bool) -> None:
    # What is made until the daemon serves is there to stay: looking for garbage in it meanwhile, again and again while
    # modules are loaded, is a fifth of the start. `Daemon.serve` lets the collector begin.
    gc.disable()
    # A door: the settings of the daemon. The client does without.
    from husk.cli.flags import plain

    if (given := plain(arguments)) is None:
        _ask_click()
    else:
        # A door: the daemon. The client, and the help of both, do without.
        from husk.cli.start import start

        start(as_dockerd, given)
        sys.exit(0)


def _ask_click() -> None:
    """Let click understand a line that is not plain, or complain about it.

    Modules stay to the end: looking for garbage among them while they are loaded, and once more at the end, would be a
    quarter of the time of a short command. Those that may take long let the collector begin.
    """
    gc.disable()
    if os.path.basename(sys.argv[0]) == "dockerd":
        # A door: click, which a daemon with plain flags does without.
        from husk.cli.serve import dockerd

        dockerd(prog_name="dockerd")
    else:
        # A door: click, and the client.
        from husk.cli.commands import enter_husk

        try:
            sys.exit(enter_husk())
        finally:
            gc.freeze()
