"""From flags to a running daemon. What flags may hold is checked together with the configuration file, not here."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from husk.config.keys import BY_FLAG
from husk.config.load import DOCKERD, SettingsSource
from husk.config.settings import from_flags, truth
from husk.daemon import check, run


def start(as_dockerd: bool, flags: Mapping[str, Any], run: Callable[[SettingsSource], object] = run) -> None:
    """Be the daemon (`run`), or with --validate look at its settings alone."""
    given = dict(flags)
    file, validate = given.pop("config-file"), given.pop("validate")
    source = SettingsSource(from_flags(given), Path(file) if file else None, DOCKERD if as_dockerd else None)
    if validate is not None and truth(BY_FLAG["validate"], validate):
        check(source)
        print("configuration OK", file=sys.stderr)
        return
    run(source)
