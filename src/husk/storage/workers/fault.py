"""A fault of a worker, told in the daemon's log: what it was reading may be in the error's message."""

import sys
import traceback

from husk.text.terminals import indented


def tell_fault() -> None:
    """Write the traceback of the error that is being handled."""
    sys.stderr.write(f"{indented(traceback.format_exc())}\n")
