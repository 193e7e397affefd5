"""`husk swarm backup` and `husk swarm restore`: all of a swarm in one file, which only a passphrase opens."""

import json
import os
import sys
from pathlib import Path

import click

from husk.cli.kit.command import HuskCommand, as_json
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import complain, document, say
from husk.client.client import Client
from husk.errors import SystemFault

_passphrase_file = click.option(
    "--passphrase-file",
    metavar="PATH",
    default="",
    help="Take the passphrase, or the unlock key, from the first line of a file; `-` is stdin.",
)


@click.command(cls=HuskCommand)
@_passphrase_file
@as_json
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def backup(place: HostChoice, /, file: Path, passphrase_file: str, as_json: bool) -> None:
    """Write all of the swarm into one file, while it runs.

    Ask any manager. The file holds services, secrets, configs, networks, nodes, tokens and keys of the swarm, sealed
    with a passphrase that you choose. A swarm with autolock has no passphrase: its unlock key opens the file."""

    async def made(engine: Client) -> None:
        found = await engine.swarm.inspect()
        locks = bool(((found.get("Spec") or {}).get("EncryptionConfig") or {}).get("AutoLockManagers"))
        secret = "" if locks else _secret(passphrase_file, "Passphrase of the backup", confirm=True)
        data = await engine.swarm.backup(secret)
        write_whole(file, data)
        opened_by = "unlock key" if locks else "passphrase"
        if as_json:
            document({"File": str(file), "Swarm": found["ID"], "Size": len(data), "OpenedBy": opened_by})
        else:
            say(f"Swarm {found['ID']} is in {file}, {len(data)} bytes. Its {opened_by} opens it.")

    ask(place, made)


@click.command(cls=HuskCommand)
@_passphrase_file
@click.option(
    "--advertise-addr", metavar="ADDRESS", default="", help="Of this host. [that of the manager that made the backup]"
)
@click.option("--listen-addr", metavar="ADDRESS", default="", help="Of the cluster port. [as it was]")
@click.option("--data-path-addr", metavar="ADDRESS", default="", help="Where packets of networks come in. [as it was]")
@as_json
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def restore(
    place: HostChoice,
    /,
    file: Path,
    passphrase_file: str,
    advertise_addr: str,
    listen_addr: str,
    data_path_addr: str,
    as_json: bool,
) -> None:
    """Go on with the swarm of a backup, as its only manager. The daemon must be in no swarm.

    Workers come back by themselves where this host has the address of a former manager. Former managers have to leave
    the swarm (docker swarm leave --force) and join again."""
    try:
        data = file.read_bytes()
    except OSError as error:
        complain(f"husk: cannot read {file}: {error.strerror}")
        raise SystemExit(1) from None
    asked_for = "Unlock key of the swarm" if opened_by(data) == "unlock key" else "Passphrase of the backup"

    async def done(engine: Client) -> None:
        secret = _secret(passphrase_file, asked_for, confirm=False)
        node = await engine.swarm.restore(
            data,
            secret,
            advertise_addr=advertise_addr,
            listen_addr=listen_addr,
            data_path_addr=data_path_addr,
        )
        if as_json:
            document({"Node": node})
        else:
            say(f"This node ({node}) is the manager of the swarm now. `docker node ls` shows which others come back.")

    ask(place, done)


def opened_by(data: bytes) -> str:
    """Read what opens a backup in its first line; empty for what is no backup, of which the daemon tells more."""
    try:
        head = json.loads(data[:4096].partition(b"\n")[0])
        return str(head["OpenedBy"])
    except (ValueError, KeyError, TypeError):
        return ""


def write_whole(file: Path, data: bytes) -> None:
    """Readable by its owner alone, and in one step: nothing is left of one that cannot be written."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
        new.replace(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise SystemFault(f"cannot write {file}: {error.strerror}") from None


def _secret(file: str, prompt: str, *, confirm: bool) -> str:
    if file:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text()
        except (OSError, ValueError) as error:
            raise SystemFault(f"cannot read the passphrase from {file}: {error}") from None
        return text.partition("\n")[0].rstrip("\r")
    if not sys.stdin.isatty():
        raise SystemFault("no passphrase can be asked for without a terminal: use --passphrase-file")
    return str(click.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True))
