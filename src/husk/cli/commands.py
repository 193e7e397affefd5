"""The commands, as click reads them: help, complaints about what cannot be read, and all that is not a plain start."""

import click

from husk.cli.kit.group import LazyGroup
from husk.cli.kit.place import Place
from husk.version import __version__

_PLACES = {
    "serve": "husk.cli.serve:serve",
    "doctor": "husk.cli.doctor:doctor",
    "version": "husk.cli.version:version",
    "ps": "husk.cli.containers.ps:ps",
    "run": "husk.cli.containers.run:run",
    "create": "husk.cli.containers.create:create",
    "logs": "husk.cli.containers.logs:logs",
    "exec": "husk.cli.containers.exec:exec_",
    "attach": "husk.cli.containers.attach:attach",
    "start": "husk.cli.containers.attach:start",
    "stop": "husk.cli.containers.verbs:stop",
    "restart": "husk.cli.containers.verbs:restart",
    "kill": "husk.cli.containers.verbs:kill",
    "pause": "husk.cli.containers.verbs:pause",
    "unpause": "husk.cli.containers.verbs:unpause",
    "wait": "husk.cli.containers.verbs:wait",
    "rename": "husk.cli.containers.verbs:rename",
    "rm": "husk.cli.containers.verbs:rm",
    "images": "husk.cli.images.images:images",
    "pull": "husk.cli.images.pull:pull",
}


@click.group(
    cls=LazyGroup,
    places=_PLACES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-v", "--version", message="husk %(version)s")
@click.option("-H", "--host", metavar="ADDRESS", default="", help="Daemon to speak to: unix://, tcp:// or ssh://.")
@click.option("-c", "--context", "context_name", metavar="NAME", default="", help="Docker context that names a daemon.")
@click.pass_context
def husk(context: click.Context, host: str, context_name: str) -> None:
    """Husk, a container engine that speaks the Docker Engine API, and a client for it."""
    context.obj = Place(host, context_name)
