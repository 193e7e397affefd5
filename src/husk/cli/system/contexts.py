"""`husk context`: names for engines. They are docker's: both commands see the same."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from husk.cli.kit.command import HuskCommand, as_json, flag, many, text
from husk.cli.kit.files import content_of
from husk.cli.kit.group import words
from husk.cli.kit.kinds import formatted
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import mapping
from husk.cli.kit.tables import show
from husk.cli.kit.templates import FormatTemplate
from husk.cli.kit.writing import complain, document, encoded, say, write
from husk.client.contexts import Contexts, StoredContext
from husk.errors import HuskError, InvalidParameter

_HEADINGS = {
    "Name": "NAME",
    "Description": "DESCRIPTION",
    "DockerEndpoint": "DOCKER ENDPOINT",
    "Error": "ERROR",
    "Current": "CURRENT",
}
_DESCRIPTION = "Description of the context."
_ENDPOINT = many("--docker", metavar="KEY=VALUE", help="Set the docker endpoint: host, ca, cert, key, skip-tls-verify.")


def _known(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(each.name) for each in Contexts().list() if each.name.startswith(begun)]


_name = click.argument("name", metavar="CONTEXT", shell_complete=_known)
_names = click.argument("names", nargs=-1, metavar="[CONTEXT...]", shell_complete=_known)


def _endpoint(given: Sequence[str]) -> dict[str, str]:
    return mapping("docker", [part for text in given for part in text.split(",")])


def _current(place: HostChoice, contexts: Contexts) -> str:
    return place.context or contexts.current


@click.command(cls=HuskCommand)
@text("--description", help=_DESCRIPTION)
@_ENDPOINT
@text("--from", "origin", help="Create context from a named context.")
@_name
def create(name: str, description: str, docker: Sequence[str], origin: str) -> None:
    """Create a context."""
    if origin and docker:
        raise InvalidParameter("cannot use --docker flag when --from is set")
    if not origin and not docker:
        raise InvalidParameter("docker endpoint configuration is required: --docker host=ADDRESS, or --from NAME")
    Contexts().create(name, description, _endpoint(docker), origin)
    say(name)
    complain(f'Successfully created context "{name}"')


@click.command(cls=HuskCommand)
@text("--description", help=_DESCRIPTION, default=None)
@_ENDPOINT
@_name
def update(name: str, description: str | None, docker: Sequence[str]) -> None:
    """Update a context."""
    Contexts().update(name, description, _endpoint(docker))
    say(name)
    complain(f'Successfully updated context "{name}"')


@click.command(cls=HuskCommand)
@formatted
@flag("-q", "--quiet", help="Only show context names.")
@as_json
@click.pass_obj
def ls(place: HostChoice, /, template: str | None, quiet: bool, as_json: bool) -> None:
    """List contexts."""
    contexts = Contexts()
    current = _current(place, contexts)
    rows = [
        {
            "Name": each.name if quiet or template or each.name != current else f"{each.name} *",
            "Description": each.description,
            "DockerEndpoint": each.host,
            "Error": "",
            "Current": str(each.name == current).lower(),
        }
        for each in contexts.list()
    ]
    if as_json:
        document([{**row, "Name": row["Name"].removesuffix(" *"), "Current": row["Current"] == "true"} for row in rows])
    elif quiet:
        for row in rows:
            say(row["Name"])
    else:
        show(_HEADINGS, tuple(_HEADINGS)[:4], rows, template)


@click.command(cls=HuskCommand)
@text("-f", "--format", "template", help="'json' or a Go template.")
@_names
@click.pass_obj
def inspect(place: HostChoice, /, names: Sequence[str], template: str) -> None:
    """Display detailed information on one or more contexts."""
    contexts = Contexts()
    found = [_details(contexts.get(name)) for name in names or [_current(place, contexts)]]
    if not template:
        say(encoded(found, indent=4))
        return
    shape = FormatTemplate("{{json .}}" if template == "json" else template)
    for each in found:
        say(shape.fill(each), exact=True)


def _details(context: StoredContext) -> dict[str, Any]:
    place = str(context.certificates) if context.certificates else "<IN MEMORY>"
    return {**context.document(), "TLSMaterial": {}, "Storage": {"TLSPath": place}}


@click.command(cls=HuskCommand)
@flag("-f", "--force", help="Force the removal of a context in use.")
@click.argument("names", nargs=-1, required=True, metavar="CONTEXT...", shell_complete=_known)
def rm(names: Sequence[str], force: bool) -> None:
    """Remove one or more contexts."""
    failed = _each(names, lambda name: Contexts().remove(name, force))
    if failed:
        raise SystemExit(1)


def _each(names: Sequence[str], act: Callable[[str], object]) -> bool:
    failed = False
    for name in names:
        try:
            act(name)
        except HuskError as error:
            failed = True
            complain(f"husk: {error.message}")
        else:
            say(name)
    return failed


@click.command("show", cls=HuskCommand)
@click.pass_obj
def show_(place: HostChoice, /) -> None:
    """Print the name of the current context."""
    say(_current(place, Contexts()))


@click.command(cls=HuskCommand)
@_name
def use(name: str) -> None:
    """Set the current docker context."""
    Contexts().use(name)
    say(name)
    complain(f'Current context is now "{name}"')
    for variable in ("HUSK_HOST", "DOCKER_HOST"):
        if os.environ.get(variable):
            complain(f"Warning: {variable} overrides the active context: unset it, or use --context {name}")


@click.command(cls=HuskCommand)
@_name
@click.argument("file", metavar="[FILE|-]", default="")
def export(name: str, file: str) -> None:
    """Export a context to a tar archive FILE or a tar stream on STDOUT."""
    packed, file = Contexts().export(name), file or f"{name}.dockercontext"
    if file == "-":
        if sys.stdout.isatty():
            raise InvalidParameter("cowardly refusing to export to a terminal, specify a file path")
        write(1, packed)
        return
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidParameter(f"cannot write {file}: {error.strerror}") from None
    with open(descriptor, "wb") as opened:
        opened.write(packed)
    say(f'Written file "{Path(file)}"')


@click.command("import", cls=HuskCommand)
@_name
@click.argument("file", metavar="FILE|-")
def import_(name: str, file: str) -> None:
    """Import a context from a tar file."""
    Contexts().import_archive(name, content_of(file))
    say(name)
    complain(f'Successfully imported context "{name}"')


context = words("context", "Manage contexts.", create, export, import_, inspect, ls, rm, show_, update, use)
