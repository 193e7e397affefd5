"""The flags of `husk run` and `husk create`: docker's, by name, letter and meaning."""

from collections.abc import Callable
from typing import Any

import click

from husk.cli.kit.command import AnyFunction, flag, many

# What they hold is read in `spec`.
_MANY = (
    ("--add-host", "", "Add a custom host-to-IP mapping (host:ip)."),
    ("--annotation", "", "Add an annotation to the container."),
    ("--attach", "-a", "Attach to STDIN, STDOUT or STDERR."),
    ("--blkio-weight-device", "", "Block IO weight (relative device weight), as /dev/sda:200."),
    ("--cap-add", "", "Add Linux capabilities."),
    ("--cap-drop", "", "Drop Linux capabilities."),
    ("--device", "", "Add a host device to the container."),
    ("--device-cgroup-rule", "", "Add a rule to the cgroup allowed devices list."),
    ("--device-read-bps", "", "Limit read rate (bytes per second) from a device, as /dev/sda:1mb."),
    ("--device-read-iops", "", "Limit read rate (IO per second) from a device, as /dev/sda:100."),
    ("--device-write-bps", "", "Limit write rate (bytes per second) to a device, as /dev/sda:1mb."),
    ("--device-write-iops", "", "Limit write rate (IO per second) to a device, as /dev/sda:100."),
    ("--dns", "", "Set custom DNS servers."),
    ("--dns-option", "", "Set DNS options."),
    ("--dns-search", "", "Set custom DNS search domains."),
    ("--env", "-e", "Set environment variables."),
    ("--env-file", "", "Read in a file of environment variables."),
    ("--expose", "", "Expose a port or a range of ports."),
    ("--group-add", "", "Add additional groups to join."),
    ("--label", "-l", "Set meta data on a container."),
    ("--label-file", "", "Read in a line delimited file of labels."),
    ("--link", "", "Add link to another container."),
    ("--link-local-ip", "", "Container IPv4/IPv6 link-local addresses."),
    ("--log-opt", "", "Log driver options."),
    ("--mount", "", "Attach a filesystem mount to the container."),
    ("--network", "", "Connect a container to a network."),
    ("--network-alias", "", "Add network-scoped alias for the container."),
    ("--publish", "-p", "Publish a container's port(s) to the host."),
    ("--security-opt", "", "Security options."),
    ("--storage-opt", "", "Storage driver options for the container."),
    ("--sysctl", "", "Sysctl options."),
    ("--tmpfs", "", "Mount a tmpfs directory."),
    ("--ulimit", "", "Ulimit options."),
    ("--volume", "-v", "Bind mount a volume."),
    ("--volumes-from", "", "Mount volumes from the specified container(s)."),
)
_ONE = (
    ("--cgroup-parent", "", "Optional parent cgroup for the container."),
    ("--cgroupns", "", "Cgroup namespace to use (host|private)."),
    ("--cidfile", "", "Write the container ID to the file."),
    ("--cpus", "", "Number of CPUs."),
    ("--cpuset-cpus", "", "CPUs in which to allow execution (0-3, 0,1)."),
    ("--cpuset-mems", "", "MEMs in which to allow execution (0-3, 0,1)."),
    ("--domainname", "", "Container NIS domain name."),
    ("--entrypoint", "", "Overwrite the default ENTRYPOINT of the image."),
    ("--gpus", "", "GPU devices to add to the container ('all' to pass all GPUs)."),
    ("--health-cmd", "", "Command to run to check health."),
    ("--health-interval", "", "Time between running the check (ms|s|m|h)."),
    ("--health-start-interval", "", "Time between running the check during the start period."),
    ("--health-start-period", "", "Start period before the health-retries countdown begins."),
    ("--health-timeout", "", "Maximum time to allow one check to run (ms|s|m|h)."),
    ("--hostname", "-h", "Container host name."),
    ("--ip", "", "IPv4 address (e.g., 172.30.100.104)."),
    ("--ip6", "", "IPv6 address (e.g., 2001:db8::33)."),
    ("--ipc", "", "IPC mode to use."),
    ("--log-driver", "", "Logging driver for the container."),
    ("--mac-address", "", "Container MAC address (e.g., 92:d0:c6:0a:29:33)."),
    ("--memory", "-m", "Memory limit."),
    ("--memory-reservation", "", "Memory soft limit."),
    ("--memory-swap", "", "Swap limit equal to memory plus swap: '-1' to enable unlimited swap."),
    ("--name", "", "Assign a name to the container."),
    ("--pid", "", "PID namespace to use."),
    ("--platform", "", "Set platform if server is multi-platform capable."),
    ("--restart", "", "Restart policy to apply when a container exits."),
    ("--runtime", "", "Runtime to use for this container."),
    ("--shm-size", "", "Size of /dev/shm."),
    ("--stop-signal", "", "Signal to stop the container."),
    ("--user", "-u", "Username or UID (format: <name|uid>[:<group|gid>])."),
    ("--userns", "", "User namespace to use."),
    ("--uts", "", "UTS namespace to use."),
    ("--volume-driver", "", "Optional volume driver for the container."),
    ("--workdir", "-w", "Working directory inside the container."),
)
_NUMBERS = (
    ("--blkio-weight", "", "Block IO (relative weight), between 10 and 1000."),
    ("--cpu-period", "", "Limit CPU CFS (Completely Fair Scheduler) period."),
    ("--cpu-quota", "", "Limit CPU CFS (Completely Fair Scheduler) quota."),
    ("--cpu-rt-period", "", "Limit CPU real-time period in microseconds."),
    ("--cpu-rt-runtime", "", "Limit CPU real-time runtime in microseconds."),
    ("--cpu-shares", "-c", "CPU shares (relative weight)."),
    ("--health-retries", "", "Consecutive failures needed to report unhealthy."),
    ("--memory-swappiness", "", "Tune container memory swappiness (0 to 100)."),
    ("--oom-score-adj", "", "Tune host's OOM preferences (-1000 to 1000)."),
    ("--pids-limit", "", "Tune container pids limit (set -1 for unlimited)."),
    ("--stop-timeout", "", "Timeout (in seconds) to stop a container."),
)
_TRUTHS = (
    ("--init", "", "Run an init inside the container that forwards signals and reaps processes."),
    ("--interactive", "-i", "Keep STDIN open even if not attached."),
    ("--no-healthcheck", "", "Disable any container-specified HEALTHCHECK."),
    ("--oom-kill-disable", "", "Disable OOM Killer."),
    ("--privileged", "", "Give extended privileges to this container."),
    ("--publish-all", "-P", "Publish all exposed ports to random ports."),
    ("--quiet", "-q", "Suppress the pull output."),
    ("--read-only", "", "Mount the container's root filesystem as read only."),
    ("--rm", "", "Automatically remove the container and its anonymous volumes when it exits."),
    ("--tty", "-t", "Allocate a pseudo-TTY."),
)


def container_flags(function: AnyFunction) -> AnyFunction:
    """All of them; the function gets them by name."""
    found: list[tuple[str, Callable[[AnyFunction], AnyFunction]]] = []
    for name, letter, help in _MANY:
        found.append((name, many(*_named(name, letter), help=help)))
    for name, letter, help in _ONE:
        default: dict[str, Any] = {} if name == "--entrypoint" else {"default": ""}
        found.append((name, click.option(*_named(name, letter), metavar="STRING", help=help, **default)))
    for name, letter, help in _NUMBERS:
        found.append((name, click.option(*_named(name, letter), type=int, metavar="INT", help=help)))
    for name, letter, help in _TRUTHS:
        default = {"default": None} if name == "--init" else {}
        found.append((name, flag(*_named(name, letter), help=help, **default)))
    when = click.Choice(["always", "missing", "never"])
    found.append(("--pull", click.option("--pull", type=when, default="missing", help="Pull image before running.")))
    for _, option in sorted(found, key=lambda each: each[0], reverse=True):
        function = option(function)
    return function


def _named(name: str, letter: str) -> tuple[str, ...]:
    spoken = {"--net": "network", "--rm": "auto_remove"}.get(name, name[2:].replace("-", "_"))
    other = ("--net",) if name == "--network" else ()
    return (*((letter,) if letter else ()), name, *other, spoken)
