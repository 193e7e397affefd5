"""The commands, as click reads them: help, complaints about what cannot be read, and all that is not a plain start."""

import click

from husk.cli.kit.command import flag
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
    "commit": ("husk.cli.containers.changes:commit", "Create a new image from a container's changes."),
    "cp": ("husk.cli.containers.cp:cp", "Copy files between a container and the local filesystem."),
    "create": ("husk.cli.containers.run:create", "Create a new container."),
    "diff": (
        "husk.cli.containers.changes:diff",
        "Inspect changes to files or directories on a container's filesystem.",
    ),
    "exec": ("husk.cli.containers.exec:exec_", "Execute a command in a running container."),
    "export": ("husk.cli.containers.changes:export", "Export a container's filesystem as a tar archive."),
    "kill": ("husk.cli.containers.verbs:kill", "Kill one or more running containers."),
    "logs": ("husk.cli.containers.logs:logs", "Fetch the logs of a container, of several, or of a Compose project."),
    "pause": ("husk.cli.containers.verbs:pause", "Pause all processes within one or more containers."),
    "port": ("husk.cli.containers.changes:port", "List port mappings or a specific mapping for the container."),
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
    "update": ("husk.cli.containers.update:update", "Update configuration of one or more containers."),
    "wait": ("husk.cli.containers.verbs:wait", "Block until one or more containers stop, then print their exit codes."),
}
_IMAGES = {
    "build": ("husk.cli.images.build:build", "Build an image from a Dockerfile."),
    "history": ("husk.cli.images.listings:history", "Show the history of an image."),
    "images": ("husk.cli.images.images:images", "List images."),
    "import": ("husk.cli.images.archives:import_", "Import the contents from a tarball to create a filesystem image."),
    "load": ("husk.cli.images.archives:load", "Load an image from a tar archive or STDIN."),
    "pull": ("husk.cli.images.pull:pull", "Download an image from a registry."),
    "push": ("husk.cli.images.verbs:push", "Upload an image to a registry."),
    "rmi": ("husk.cli.images.verbs:rmi", "Remove one or more images."),
    "save": ("husk.cli.images.archives:save", "Save images to a tar archive (streamed to STDOUT by default)."),
    "tag": ("husk.cli.images.verbs:tag", "Create a tag TARGET_IMAGE that refers to SOURCE_IMAGE."),
}
_SYSTEM = {
    "df": ("husk.cli.system.df:df", "Show disk usage."),
    "events": ("husk.cli.system.events:events", "Get real time events from the server."),
    "info": ("husk.cli.system.info:info", "Display system-wide information."),
    "prune": ("husk.cli.system.prune:prune", "Remove unused data."),
}
_OWN = {
    "builder": ("husk.cli.commands:builder", "Manage builds."),
    "buildx": ("husk.cli.system.docker_plugins:buildx", "Docker Buildx: run Docker's plugin with this engine."),
    "completion": (
        "husk.cli.system.completion:completion",
        'Print the completions for a shell: eval "$(husk completion bash)".',
    ),
    "compose": ("husk.cli.system.docker_plugins:compose", "Docker Compose: run Docker's plugin with this engine."),
    "config": ("husk.cli.swarm.kept:config", "Manage Swarm configs."),
    "container": ("husk.cli.commands:container", "Manage containers."),
    "context": ("husk.cli.system.contexts:context", "Manage contexts."),
    "dashboard": ("husk.cli.dashboard:dashboard", "Show a running daemon in the browser, until ctrl-C."),
    "doctor": ("husk.cli.doctor:doctor", "Tell what this host offers and lacks, one line each with the cure."),
    "help": ("husk.cli.system.help:help_", "Show the help of the command that is named."),
    "image": ("husk.cli.commands:image", "Manage images."),
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
    "network": ("husk.cli.system.networks:network", "Manage networks."),
    "node": ("husk.cli.swarm.nodes:node", "Manage Swarm nodes."),
    "plugin": ("husk.cli.system.plugins:plugin", "Manage plugins."),
    "search": ("husk.cli.images.listings:search", "Search Docker Hub for images."),
    "secret": ("husk.cli.swarm.kept:secret", "Manage Swarm secrets."),
    "serve": ("husk.cli.serve:serve", "Run the daemon in the foreground."),
    "service": ("husk.cli.swarm.services:service", "Manage Swarm services."),
    "stack": ("husk.cli.swarm.stacks:stack", "Manage Swarm stacks."),
    "swarm": ("husk.cli.commands:swarm", "Manage Swarm, back one up, or bring one back."),
    "system": ("husk.cli.commands:system", "Manage the engine."),
    "uninstall": (
        "husk.cli.install.command:uninstall",
        "Take back what `husk install` did, and say what is left: data, containers, settings.",
    ),
    "version": ("husk.cli.version:version", "Show the versions of this command and of the engine."),
    "volume": ("husk.cli.system.volumes:volume", "Manage volumes."),
}


@click.group(
    cls=LazyGroup,
    places={**_CONTAINERS, **_IMAGES, **_SYSTEM, **_OWN},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-v", "--version", message="husk %(version)s")
@click.option("-H", "--host", metavar="ADDRESS", default="", help="Daemon to speak to: unix://, tcp:// or ssh://.")
@click.option("-c", "--context", "context_name", metavar="NAME", default="", help="Docker context that names a daemon.")
@flag("-D", "--debug", help="Show all that is known of a failure.")
@click.pass_context
def husk(context: click.Context, host: str, context_name: str, debug: bool) -> None:
    """Husk, a container engine that speaks the Docker Engine API, and a client for it."""
    context.obj = HostChoice(host, context_name, debug)


def enter_husk(arguments: list[str]) -> int:
    """Run the line that was typed; the exit code."""
    return enter(husk, "husk", arguments)


# docker's longer names for the same.
container = LazyGroup(
    "container",
    places={
        **_CONTAINERS,
        "inspect": ("husk.cli.system.inspect:container", "Display detailed information on one or more containers."),
        "ls": _CONTAINERS["ps"],
        "prune": ("husk.cli.containers.changes:prune", "Remove all stopped containers."),
    },
    help="Manage containers.",
)
image = LazyGroup(
    "image",
    places={
        **_IMAGES,
        "inspect": ("husk.cli.system.inspect:image", "Display detailed information on one or more images."),
        "ls": _IMAGES["images"],
        "prune": ("husk.cli.images.listings:prune", "Remove unused images."),
        "rm": _IMAGES["rmi"],
    },
    help="Manage images.",
)
system = LazyGroup(
    "system",
    places={**_SYSTEM, "dial-stdio": ("husk.cli.system.dial:dial_stdio", "")},
    help="Manage the engine.",
)
builder = LazyGroup(
    "builder",
    places={
        "build": _IMAGES["build"],
        "prune": ("husk.cli.images.builder:prune", "Remove build cache."),
    },
    help="Manage builds.",
)
_MEMBERSHIP = "husk.cli.swarm.membership"
swarm = LazyGroup(
    "swarm",
    places={
        "backup": ("husk.cli.swarm.backup:backup", "Write all of the swarm into one file, while it runs."),
        "ca": (f"{_MEMBERSHIP}:ca", "Display and rotate the root CA."),
        "init": (f"{_MEMBERSHIP}:init", "Initialize a swarm."),
        "join": (f"{_MEMBERSHIP}:join", "Join a swarm as a node and/or manager."),
        "join-token": (f"{_MEMBERSHIP}:join_token", "Manage join tokens."),
        "leave": (f"{_MEMBERSHIP}:leave", "Leave the swarm."),
        "restore": ("husk.cli.swarm.backup:restore", "Go on with the swarm of a backup, as its only manager."),
        "unlock": (f"{_MEMBERSHIP}:unlock", "Unlock swarm."),
        "unlock-key": (f"{_MEMBERSHIP}:unlock_key", "Manage the unlock key."),
        "update": (f"{_MEMBERSHIP}:update", "Update the swarm."),
    },
    help="Manage Swarm, back one up, or bring one back.",
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
