"""`husk man`: the manual page, made from the commands themselves."""

from collections.abc import Iterator

import click

from husk.cli.kit.command import HuskCommand
from husk.cli.kit.writing import say
from husk.version import __version__

_ENVIRONMENT = (
    ("HUSK_HOST, DOCKER_HOST", "Daemon to speak to: unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST."),
    ("DOCKER_TLS_VERIFY, DOCKER_CERT_PATH", "Speak TLS on tcp://, with ca.pem, cert.pem and key.pem of a directory."),
    ("DOCKER_CONTEXT", "Docker context that says which daemon to speak to."),
    ("DOCKER_CONFIG", "Directory of docker's settings, contexts and credentials; ~/.docker without it."),
)
_FILES = (
    ("/run/husk.sock", "The socket of the daemon, where nothing else is said."),
    ("/etc/husk/daemon.json", "Settings of the daemon."),
    ("~/.docker/config.json", "Logins and the current context, as docker's client keeps them."),
    ("~/.docker/contexts", "Contexts: names for engines."),
    ("~/.docker/cli-plugins", "Docker's plugins for husk compose and husk buildx; those of packages are found, too."),
)
EXAMPLES = {
    "husk run -it --rm busybox": "A shell in a new container that is gone afterwards:",
    "husk run -d --name web -p 8080:80 nginx": "A web server on port 8080 of this machine:",
    "husk logs -f --since 10m web db": "What two containers write, from ten minutes ago on:",
    "husk build -t app:1 .": "An image of the Dockerfile in this directory:",
    "husk compose up -d": "All that a Compose file describes, by Docker's plugin:",
    "husk service create --name web --replicas 3 -p 80:80 nginx": "Three copies of a web server in a swarm:",
    "husk context create --docker host=ssh://me@box box": "A name for the engine of another machine:",
    "husk doctor web": "The reason why a container does not run well:",
}
_AGAIN = ("builder", "container", "image", "system")
_CODES = (
    ("125", "The container could not be made or started, or a flag is not understood."),
    ("126, 127", "The command of the container cannot be executed, or is not there."),
    ("130", "Ended by ctrl-C."),
    ("1", "All else that fails."),
    ("any other", "What the container ended with."),
)


@click.command(cls=HuskCommand)
@click.pass_context
def man(context: click.Context) -> None:
    """Print the manual page: husk man > /usr/local/share/man/man1/husk.1."""
    say("\n".join(page(context.find_root())))


def page(root: click.Context) -> Iterator[str]:
    """Its lines, in the language of man pages."""
    group = root.command
    assert isinstance(group, click.Group)
    yield f'.TH HUSK 1 "" "husk {__version__}" "Husk"'
    yield from (".SH NAME", "husk \\- a container engine, and a client for it")
    yield from (".SH SYNOPSIS", ".B husk", "[\\-H ADDRESS] [\\-c CONTEXT] COMMAND ...")
    yield from (".SH DESCRIPTION", _text(group.help or ""))
    yield from (".SH OPTIONS", *_options(group, root))
    yield ".SH COMMANDS"
    told: set[int] = set()
    names = group.list_commands(root)
    # docker's longer names for the same stand behind the others, with what they alone have.
    for name in [*(each for each in names if each not in _AGAIN), *_AGAIN]:
        yield from _command(group.get_command(root, name), name, root, told)
    yield from (".SH ENVIRONMENT", *_listed(_ENVIRONMENT))
    yield from (".SH FILES", *_listed(_FILES))
    yield ".SH EXAMPLES"
    for line, meaning in EXAMPLES.items():
        yield from (_text(meaning), ".PP", ".nf", f".RS\n{_text(line)}\n.RE", ".fi", ".PP")
    yield from (".SH EXIT STATUS", *_listed(_CODES))


def _command(command: click.Command | None, name: str, parent: click.Context, told: set[int]) -> Iterator[str]:
    if command is None or command.hidden or id(command) in told:
        return
    told.add(id(command))
    context = click.Context(command, info_name=name, parent=parent)
    yield f".SS {_text(context.command_path)} {_text(' '.join(command.collect_usage_pieces(context)))}"
    yield _text((command.help or "").split("\f")[0])
    yield from _options(command, context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _command(command.get_command(context, each), each, context, told)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [option.get_help_record(context) for option in command.get_params(context)]
    yield from _listed([record for record in records if record is not None])


def _listed(entries: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Iterator[str]:
    for term, told in entries:
        yield from (".TP", f".B {_text(term)}", _text(told))


def _text(text: str) -> str:
    """Words without meaning for the formatter, paragraphs apart."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    lines = [line.strip() for line in plain.splitlines()]
    return "\n".join((".PP" if not line else f"\\&{line}" if line[:1] in ".'" else line) for line in lines).strip()
