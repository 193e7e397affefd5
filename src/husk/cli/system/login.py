"""`husk login` and `husk logout`: who we are at registries, kept where docker's client keeps it."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from husk.cli.kit.command import HuskCommand, as_json, flag
from husk.cli.kit.engine import ask
from husk.cli.kit.place import HostChoice
from husk.cli.kit.writing import complain, document, say
from husk.client.address import config_directory, read_json
from husk.client.client import Client
from husk.client.names import host_of
from husk.errors import HuskError, InvalidParameter


@click.command(cls=HuskCommand)
@click.option("-u", "--username", metavar="STRING", default="", help="Username.")
@click.option("-p", "--password", metavar="STRING", default="", help="Password or personal access token.")
@flag("--password-stdin", help="Take the password from stdin.")
@as_json
@click.argument("server", default="")
@click.pass_obj
def login(place: HostChoice, /, username: str, password: str, password_stdin: bool, server: str, as_json: bool) -> None:
    """Authenticate to a registry."""
    if password_stdin:
        if password or not username:
            raise click.UsageError("--password-stdin needs --username, and no --password")
        password = sys.stdin.read().rstrip("\r\n")
    elif not (username and password) and not sys.stdin.isatty():
        complain("Error: Cannot perform an interactive login from a non TTY device. Use --password-stdin")
        raise SystemExit(1)
    username = username or click.prompt("Username", err=True)
    password = password or click.prompt("Password", hide_input=True, err=True)

    async def known(engine: Client) -> None:
        await engine.login(username, password, registry=server)
        remember(config_directory() / "config.json", host_of(server), username, password)
        if as_json:
            document({"Server": host_of(server), "Username": username})
        else:
            say("Login Succeeded")

    ask(place, known)


@click.command(cls=HuskCommand)
@click.argument("server", default="")
def logout(server: str) -> None:
    """Log out from a registry."""

    say(f"Removing login credentials for {host_of(server)}")
    remember(config_directory() / "config.json", host_of(server), "", "")


def remember(file: Path, host: str, username: str, password: str) -> None:
    """Write it into docker's settings, or tell the helper that they name; without a name, forget it."""

    settings = read_json(file)
    helper = (settings.get("credHelpers") or {}).get(host) or settings.get("credsStore")
    if helper:
        _tell_helper(str(helper), host, username, password)
        return
    auths: dict[str, Any] = settings.setdefault("auths", {})
    auths.pop(host, None)
    if username:
        auths[host] = {"auth": base64.b64encode(f"{username}:{password}".encode()).decode()}
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
            written.write(msgspec.json.format(msgspec.json.encode(settings), indent=4))
        new.replace(file)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise HuskError(f"cannot write {file}: {error.strerror}") from None


def _tell_helper(helper: str, host: str, username: str, password: str) -> None:
    program = f"docker-credential-{helper}"
    entry = {"ServerURL": host, "Username": username, "Secret": password}
    verb, given = ("store", msgspec.json.encode(entry)) if username else ("erase", host.encode())
    try:
        done = subprocess.run([program, verb], input=given, capture_output=True, check=False)
    except OSError as error:
        raise InvalidParameter(f"docker's config.json names {program}, which cannot be run: {error.strerror}") from None
    if done.returncode:
        raise HuskError(f"{program} {verb} failed: {(done.stdout + done.stderr).decode(errors='replace').strip()}")
