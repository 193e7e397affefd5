"""`husk doctor`: reports on the things that containers need and this host has or lacks, with cures; on the health of
the store; on the reasons for which a container does not run."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import click

from husk.cli import checks, cures
from husk.cli.checks import Finding, Fix
from husk.cli.kit.complete import containers
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.words import in_line
from husk.cli.store import check
from husk.cli.survey import survey
from husk.cli.system.why import why
from husk.client.client import Client

_MARKS = {"ok": ("ok", "green"), "poor": ("warn", "yellow"), "bad": ("FAIL", "red")}


class Line(Protocol):
    """A line of the report on a host or a container."""

    @property
    def name(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def detail(self) -> str: ...
    @property
    def cure(self) -> str: ...


@click.command()
@click.argument("container", required=False, shell_complete=containers)
@click.option("--fix", is_flag=True, help="Apply the cures that can be applied from here (packages, cgroup mounts).")
@click.option("-q", "--quiet", is_flag=True, help="Only print what keeps containers from running.")
@click.option("--data-root", metavar="DIR", default="/var/lib/husk", help="Where overlayfs must work, or the store is.")
@click.option("--check-store", is_flag=True, help="Check every blob, layer and record of the data root instead.")
@click.option("--deep", is_flag=True, help="With --check-store: also unpack every layer again and compare its files.")
@click.pass_obj
def doctor(
    place: HostChoice, container: str | None, fix: bool, quiet: bool, data_root: str, check_store: bool, deep: bool
) -> None:
    """Tell what this host offers and lacks, one line each with the cure.

    With a CONTAINER: why that one does not run, or does not do well, and its last lines.

    The exit status is 0 when containers can run (or that CONTAINER runs well), 1 when they cannot; with --check-store 0
    when the store is sound. --fix then mends what can be mended, and needs the daemon stopped.
    """

    if container is not None:
        if fix or check_store or deep:
            raise click.UsageError("a CONTAINER is only looked at: --fix, --check-store and --deep are for the host")
        _explain(place, container, quiet)
        return
    if check_store:
        sys.exit(0 if check(Path(data_root), deep=deep, fix=fix, quiet=quiet) else 1)
    if deep:
        raise click.UsageError("--deep belongs to --check-store")

    healthy = report(lambda: checks.judge(survey(Path(data_root))), cures.apply if fix else None, quiet)
    sys.exit(0 if healthy else 1)


def report(
    examine: Callable[[], list[Finding]], mend: Callable[[Iterable[Fix]], list[str]] | None = None, quiet: bool = False
) -> bool:
    """Tell what is found on the host, after mending with `mend` what can be; return True if containers can run."""
    findings = examine()
    if mend is not None and any(finding.fix for finding in findings):
        curable = [finding for finding in findings if finding.fix]
        for finding in curable:
            click.echo(f"husk doctor: {in_line(finding.cure)}", err=True)
        for problem in mend([finding.fix for finding in curable if finding.fix]):
            click.echo(f"husk doctor: {in_line(problem)}", err=True)
        findings = examine()
    _show(findings, quiet)
    healthy = all(finding.verdict != "bad" for finding in findings)
    if not quiet:
        click.echo("Containers can run here." if healthy else "Containers cannot run here: see the lines marked FAIL.")
    return healthy


def _show(lines: Sequence[Line], quiet: bool) -> None:
    width = max(len(each.name) for each in lines)
    for each in lines:
        if quiet and each.verdict != "bad":
            continue
        mark, colour = _MARKS[each.verdict]
        told = f"{each.name:{width}}  {each.detail}" + (f". Cure: {each.cure}" if each.cure else "")
        click.echo(f"{click.style(f'{mark:4}', fg=colour)}  {in_line(told)}")


def _explain(place: HostChoice, container: str, quiet: bool) -> None:
    async def work(engine: Client) -> int:
        reasons, lines = await why(engine, container, place)
        _show(reasons, quiet)
        runs = all(each.verdict != "bad" for each in reasons)
        if lines and not quiet:
            click.echo("Its last lines:")
            for line in lines:
                click.echo(f"    {in_line(line)}")
        return 0 if runs else 1

    ask(place, work)
