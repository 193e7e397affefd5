"""`husk doctor`: what does this host offer to containers, what does it lack, and what cures it? Is the store sound?"""

import sys

import click

_MARKS = {"ok": ("ok", "green"), "poor": ("warn", "yellow"), "bad": ("FAIL", "red")}


@click.command()
@click.option("--fix", is_flag=True, help="Apply the cures that can be applied from here (packages, cgroup mounts).")
@click.option("-q", "--quiet", is_flag=True, help="Only print what keeps containers from running.")
@click.option("--data-root", metavar="DIR", default="/var/lib/husk", help="Where overlayfs must work, or the store is.")
@click.option("--check-store", is_flag=True, help="Check every blob, layer and record of the data root instead.")
@click.option("--deep", is_flag=True, help="With --check-store: also unpack every layer again and compare its files.")
def doctor(fix: bool, quiet: bool, data_root: str, check_store: bool, deep: bool) -> None:
    """Tell what this host offers and lacks, one line each with the cure.

    The exit status is 0 when containers can run, 1 when they cannot; with --check-store 0 when the store is sound.
    --fix then mends what can be mended, and needs the daemon stopped.
    """
    from pathlib import Path

    if check_store:
        from husk.cli.store import check

        sys.exit(0 if check(Path(data_root), deep=deep, fix=fix, quiet=quiet) else 1)
    if deep:
        raise click.UsageError("--deep belongs to --check-store")

    from husk.cli import checks, cures

    root = Path(data_root)
    findings = checks.examine(root)
    if fix and any(finding.fix for finding in findings):
        curable = [finding for finding in findings if finding.fix]
        for finding in curable:
            click.echo(f"husk doctor: {finding.cure}", err=True)
        for problem in cures.apply(finding.fix for finding in curable if finding.fix):
            click.echo(f"husk doctor: {problem}", err=True)
        findings = checks.examine(root)
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        if quiet and finding.verdict != "bad":
            continue
        mark, colour = _MARKS[finding.verdict]
        line = f"{click.style(f'{mark:4}', fg=colour)}  {finding.name:{width}}  {finding.detail}"
        click.echo(f"{line}. Cure: {finding.cure}" if finding.cure else line)
    healthy = all(finding.verdict != "bad" for finding in findings)
    if not quiet:
        click.echo("Containers can run here." if healthy else "Containers cannot run here: see the lines marked FAIL.")
    sys.exit(0 if healthy else 1)
