"""The `husk` command: the daemon (serve, doctor), and a client for whoever has no docker client (run, ps, …).

Commands import what they need when they run, so that each answers at once, and a daemon whose flags are plain starts
without click. Those of the client use the library's face (`husk.client`) and nothing else of Husk.
"""

import gc
import io
import os
import sys
from collections.abc import Sequence
from types import TracebackType

from husk.cli.kit.words import visible
from husk.errors import HuskError


def main(line: Sequence[str] | None = None) -> None:
    """Entry point, for the line that was typed where none is given. A link to it that is called `dockerd` is one.

    Errors that the user can mend are one line, not a traceback.
    """
    sys.excepthook = _tell_fault
    program, *arguments = sys.argv if line is None else line
    name = os.path.basename(program)
    try:
        if name == "dockerd":
            _serve(arguments, as_dockerd=True)
        elif arguments[:1] == ["serve"]:
            _serve(arguments[1:], as_dockerd=False)
        else:
            _ask_click(arguments, as_dockerd=False)
    except HuskError as error:
        print(f"{name if name == 'dockerd' else 'husk'}: {visible(error.message)}", file=sys.stderr)
        sys.exit(1)


def _tell_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of a fault of ours, in whose message there may be anything."""
    told, sys.stderr = sys.stderr, io.StringIO()
    try:
        sys.__excepthook__(kind, error, trace)
        written = sys.stderr.getvalue()
    finally:
        sys.stderr = told
    print(visible(written), end="", file=sys.stderr)


def _serve(arguments: list[str], as_dockerd: bool) -> None:
    # What is made until the daemon serves is there to stay: looking for garbage in it meanwhile, again and again while
    # modules are loaded, is a fifth of the start. `Daemon.serve` lets the collector begin.
    gc.disable()
    # A door: the settings of the daemon. The client does without.
    from husk.cli.flags import plain

    if (given := plain(arguments)) is None:
        _ask_click(arguments if as_dockerd else ["serve", *arguments], as_dockerd)
    else:
        # A door: the daemon. The client, and the help of both, do without.
        from husk.cli.start import start

        start(as_dockerd, given)
        sys.exit(0)


def _ask_click(arguments: list[str], as_dockerd: bool) -> None:
    """Let click understand a line that is not plain, or complain about it.

    Modules stay to the end: looking for garbage among them while they are loaded, and once more at the end, would be a
    quarter of the time of a short command. Those that may take long let the collector begin.
    """
    gc.disable()
    if as_dockerd:
        # A door: click, which a daemon with plain flags does without.
        from husk.cli.serve import dockerd

        dockerd(arguments, prog_name="dockerd")
    else:
        # A door: click, and the client.
        from husk.cli.commands import enter_husk

        try:
            sys.exit(enter_husk(arguments))
        finally:
            gc.freeze()
