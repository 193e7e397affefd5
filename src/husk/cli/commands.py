"""The commands, as click reads them: help, complaints about what cannot be read, and all that is not a plain start."""

import click

from husk.cli.kit.entry import enter
from husk.cli.kit.group import LazyGroup
from husk.cli.kit.place import HostChoice
from husk.version import __version__

# Where each command is, and what help says of it; those of which it says nothing are not shown there.
_CONTAINERS = {
    "attach": (
        "husk.cli.containers.attach:attach",
        "Attach local standard input, output, and error streams to a running container.",
    ),
    "cp": ("husk.cli.containers.cp:cp", "Copy files between a container and the local filesystem."),
    "create": ("husk.cli.containers.create:create", "Create a new container."),
    "exec": ("husk.cli.containers.exec:exec_", "Execute a command in a running container."),
    "kill": ("husk.cli.containers.verbs:kill", "Kill one or more running containers."),
    "logs": ("husk.cli.containers.logs:logs", "Fetch the logs of a container."),
    "pause": ("husk.cli.containers.verbs:pause", "Pause all processes within one or more containers."),
    "ps": ("husk.cli.containers.ps:ps", "List containers."),
    "rename": ("husk.cli.containers.verbs:rename", "Rename a container."),
    "restart": ("husk.cli.containers.verbs:restart", "Restart one or more containers."),
    "rm": ("husk.cli.containers.verbs:rm", "Remove one or more containers."),
    "run": ("husk.cli.containers.run:run", "Create and run a new container from an image."),
    "start": ("husk.cli.containers.attach:start", "Start one or more stopped containers."),
    "stats": ("husk.cli.containers.stats:stats", "Display a live stream of container(s) resource usage statistics."),
    "stop": ("husk.cli.containers.verbs:stop", "Stop one or more running containers."),
    "top": ("husk.cli.containers.top:top", "Display a live screen of all containers, or the processes of one."),
    "unpause": ("husk.cli.containers.verbs:unpause", "Unpause all processes within one or more containers."),
    "wait": ("husk.cli.containers.verbs:wait", "Block until one or more containers stop, then print their exit codes."),
}
_IMAGES = {
    "build": ("husk.cli.images.build:build", "Build an image from a Dockerfile."),
    "images": ("husk.cli.images.images:images", "List images."),
    "pull": ("husk.cli.images.pull:pull", "Download an image from a registry."),
    "push": ("husk.cli.images.verbs:push", "Upload an image to a registry."),
    "rmi": ("husk.cli.images.verbs:rmi", "Remove one or more images."),
    "tag": ("husk.cli.images.verbs:tag", "Create a tag TARGET_IMAGE that refers to SOURCE_IMAGE."),
}
_SYSTEM = {
    "df": ("husk.cli.system.df:df", "Show disk usage."),
    "events": ("husk.cli.system.events:events", "Get real time events from the server."),
    "info": ("husk.cli.system.info:info", "Display system-wide information."),
    "prune": ("husk.cli.system.prune:prune", "Remove unused data."),
}
_OWN = {
    "completion": (
        "husk.cli.system.completion:completion",
        'Print the completions for a shell: eval "$(husk completion bash)".',
    ),
    "container": ("husk.cli.commands:container", ""),
    "dashboard": ("husk.cli.dashboard:dashboard", "Show a running daemon in the browser, until ctrl-C."),
    "doctor": ("husk.cli.doctor:doctor", "Tell what this host offers and lacks, one line each with the cure."),
    "image": ("husk.cli.commands:image", ""),
    "inspect": (
        "husk.cli.system.inspect:inspect",
        "Return low-level information on containers, images, networks, volumes and services.",
    ),
    "install": (
        "husk.cli.install.command:install",
        "Make Husk a service of this host: for systemd or OpenRC, with group, completions and manual page.",
    ),
    "lab": ("husk.cli.commands:lab", "Make several hosts on this machine, to see a swarm on a laptop."),
    "login": ("husk.cli.system.login:login", "Authenticate to a registry."),
    "logout": ("husk.cli.system.login:logout", "Log out from a registry."),
    "man": ("husk.cli.system.man:man", "Print the manual page: husk man > /usr/local/share/man/man1/husk.1."),
    "migrate": (
        "husk.cli.migrate.command:migrate",
        "Bring images, volumes, networks and containers of a docker or podman on this host over.",
    ),
    "serve": ("husk.cli.serve:serve", "Run the daemon in the foreground."),
    "swarm": ("husk.cli.commands:swarm", "Back up a swarm, or bring one back."),
    "system": ("husk.cli.commands:system", ""),
    "uninstall": (
        "husk.cli.install.command:uninstall",
        "Take back what `husk install` did, and say what is left: data, containers, settings.",
    ),
    "version": ("husk.cli.version:version", "Print the version of Husk."),
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
    context.obj = HostChoice(host, context_name)


def enter_husk(arguments: list[str]) -> int:
    """Run the line that was typed; the exit code."""
    return enter(husk, "husk", arguments)


# docker's longer names for the same.
_INSPECT = {"inspect": _OWN["inspect"]}
container = LazyGroup(
    "container",
    places={**_CONTAINERS, **_INSPECT, "ls": _CONTAINERS["ps"]},
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
    places={**_SYSTEM, "dial-stdio": ("husk.cli.system.dial:dial_stdio", "")},
    help="Manage the engine: the same commands under docker's longer names.",
    hidden=True,
)
swarm = LazyGroup(
    "swarm",
    places={
        "backup": ("husk.cli.swarm.backup:backup", "Write all of the swarm into one file, while it runs."),
        "restore": ("husk.cli.swarm.backup:restore", "Go on with the swarm of a backup, as its only manager."),
    },
    help="Back up a swarm, or bring one back. All else about swarms is `docker swarm`.",
)
lab = LazyGroup(
    "lab",
    places={
        "down": ("husk.cli.lab.command:down", "End all hosts, with everything on them."),
        "ls": ("husk.cli.lab.command:ls", "List the hosts of a lab."),
        "start": (
            "husk.cli.lab.command:start",
            "Start the daemon of a host again: that of the husk that is installed now.",
        ),
        "stop": ("husk.cli.lab.command:stop", "End the daemon of a host; its containers run on."),
        "up": ("husk.cli.lab.command:up", "Make several hosts on this machine, each with a daemon of its own."),
    },
    help="Make several hosts on this machine, to see a swarm on a laptop.",
)
