"""`husk doctor --check-store`: checks that everything in the data root is what its digest and its record say."""

import asyncio
import os
from contextlib import AbstractContextManager
from pathlib import Path

import click

from husk.claims import claimed_data_root
from husk.cli.kit.words import in_line
from husk.engine.checkup import Examination, examine, examine_live
from husk.engine.repair import repair
from husk.errors import Conflict, Forbidden, NotFound
from husk.swarm.state.kinds import TYPES


class StoreChecks:
    """Looks at a store, and its repair."""

    def require_root(self) -> None:
        if os.geteuid() != 0:
            raise Forbidden("only root can read the store: sudo husk doctor --check-store")

    def claimed(self, data_root: Path) -> AbstractContextManager[None]:
        """Keep daemons away meanwhile; Conflict where one is at work."""
        return claimed_data_root(data_root)

    def examine(self, data_root: Path, deep: bool) -> Examination:
        return asyncio.run(examine(data_root, TYPES, deep))

    def examine_live(self, data_root: Path, deep: bool) -> Examination:
        return asyncio.run(examine_live(data_root, TYPES, deep))

    def repair(self, data_root: Path, found: Examination) -> list[str]:
        return asyncio.run(repair(data_root, found))


def check(data_root: Path, *, deep: bool, fix: bool, quiet: bool, checks: StoreChecks | None = None) -> bool:
    """Print what is wrong, one line each with the cure, and with `fix` mend it; whether the store is sound now."""
    checks = checks or StoreChecks()
    checks.require_root()
    if not data_root.is_dir():
        raise NotFound(f"there is no directory {data_root}: say where the store is with --data-root")
    try:
        # Held for a look as well, so that no daemon starts in the middle of it.
        with checks.claimed(data_root):
            found = checks.examine(data_root, deep)
            if fix and any(problem.fixable for problem in found.problems):
                _tell(found, quiet)
                for line in checks.repair(data_root, found):
                    click.echo(f"husk doctor: {in_line(line)}", err=True)
                found = checks.examine(data_root, deep)
    except Conflict as conflict:
        if fix:
            raise Conflict(f"nothing is mended while a daemon works: {conflict.message}") from None
        found = checks.examine_live(data_root, deep)
        if not quiet:
            click.echo("A daemon uses this store: what it is working on at the moment is left out.")
    _tell(found, quiet)
    if not quiet:
        verdict = "The store is sound" if found.sound else "The store is damaged: see the lines marked FAIL"
        click.echo(f"{verdict}: {found.looked_at}." if found.sound else f"{verdict}. Looked at {found.looked_at}.")
    return found.sound


def _tell(found: Examination, quiet: bool) -> None:
    for problem in found.problems:
        if quiet and not problem.damage:
            continue
        mark = click.style("FAIL", fg="red") if problem.damage else click.style("warn", fg="yellow")
        click.echo(f"{mark}  {in_line(f'{problem.subject}: {problem.detail}. Cure: {problem.cure}')}")
