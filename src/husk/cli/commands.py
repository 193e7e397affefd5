"""The commands, as click reads them: help, complaints about what cannot be read, and all that is not a plain start."""

import click

from husk.cli.kit.group import LazyGroup
from husk.cli.kit.place import Place
from husk.version import __version__

_CONTAINERS = {
    "attach": "husk.cli.containers.attach:attach",
    "cp": "husk.cli.containers.cp:cp",
    "create": "husk.cli.containers.create:create",
    "exec": "husk.cli.containers.exec:exec_",
    "kill": "husk.cli.containers.verbs:kill",
    "logs": "husk.cli.containers.logs:logs",
    "pause": "husk.cli.containers.verbs:pause",
    "ps": "husk.cli.containers.ps:ps",
    "rename": "husk.cli.containers.verbs:rename",
    "restart": "husk.cli.containers.verbs:restart",
    "rm": "husk.cli.containers.verbs:rm",
    "run": "husk.cli.containers.run:run",
    "start": "husk.cli.containers.attach:start",
    "stats": "husk.cli.containers.stats:stats",
    "stop": "husk.cli.containers.verbs:stop",
    "top": "husk.cli.containers.top:top",
    "unpause": "husk.cli.containers.verbs:unpause",
    "wait": "husk.cli.containers.verbs:wait",
}
_IMAGES = {
    "build": "husk.cli.images.build:build",
    "images": "husk.cli.images.images:images",
    "pull": "husk.cli.images.pull:pull",
    "push": "husk.cli.images.verbs:push",
    "rmi": "husk.cli.images.verbs:rmi",
    "tag": "husk.cli.images.verbs:tag",
}
_SYSTEM = {
    "df": "husk.cli.system.df:df",
    "events": "husk.cli.system.events:events",
    "info": "husk.cli.system.info:info",
    "prune": "husk.cli.system.prune:prune",
}
_OWN = {
    "completion": "husk.cli.system.completion:completion",
    "container": "husk.cli.commands:container",
    "dashboard": "husk.cli.dashboard:dashboard",
    "doctor": "husk.cli.doctor:doctor",
    "image": "husk.cli.commands:image",
    "inspect": "husk.cli.system.inspect:inspect",
    "install": "husk.cli.install.command:install",
    "login": "husk.cli.system.login:login",
    "logout": "husk.cli.system.login:logout",
    "man": "husk.cli.system.man:man",
    "serve": "husk.cli.serve:serve",
    "system": "husk.cli.commands:system",
    "uninstall": "husk.cli.install.command:uninstall",
    "version": "husk.cli.version:version",
}


@click.group(
    cls=LazyGroup,
    places={**_CONTAINERS, **_IMAGES, **_SYSTEM, **_OWN},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-v", "--version", message="husk %(version)s")
@click.option("-H", "--host", metavar="ADDRESS", default="", help="Daemon to speak to: unix://, tcp:// or ssh://.")
@click.option("-c", "--context", "context_name", metavar="NAME", default="", help="Docker context that names a daemon.")
@click.pass_context
def husk(context: click.Context, host: str, context_name: str) -> None:
    """Husk, a container engine that speaks the Docker Engine API, and a client for it."""
    context.obj = Place(host, context_name)


# docker's longer names for the same.
_INSPECT = {"inspect": "husk.cli.system.inspect:inspect"}
container = LazyGroup(
    "container",
    places={**_CONTAINERS, **_INSPECT, "ls": "husk.cli.containers.ps:ps"},
    help="Manage containers: the same commands under docker's longer names.",
    hidden=True,
)
image = LazyGroup(
    "image",
    places={**_IMAGES, **_INSPECT, "ls": _IMAGES["images"], "rm": _IMAGES["rmi"]},
    help="Manage images: the same commands under docker's longer names.",
    hidden=True,
)
system = LazyGroup(
    "system",
    places={**_SYSTEM, "dial-stdio": "husk.cli.system.dial:dial_stdio"},
    help="Manage the engine: the same commands under docker's longer names.",
    hidden=True,
)
