"""The files that belong on a host, each with its place: systemd's units or OpenRC's script, completions of the shells
and the manual page."""

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click

from husk.cli.kit import shells
from husk.cli.system.man import page

UNITS = ("husk.socket", "husk.service")
UNIT_DIRECTORY = "/etc/systemd/system"
SOCKET = "/run/husk.sock"
SCRIPT = "/etc/init.d/husk"

_SERVICE = """\
# The daemon as a system service. `husk install` writes this file, and `husk uninstall` removes it: your own settings
# belong into /etc/husk/daemon.json, or into what `systemctl edit husk` makes.
[Unit]
Description=Husk container engine
After=network-online.target nftables.service firewalld.service husk.socket
Wants=network-online.target
Requires=husk.socket
StartLimitIntervalSec=60
StartLimitBurst=3

[Service]
Type=notify
ExecStart={program} serve
ExecReload=/bin/kill -HUP $MAINPID
# A daemon's end is not its containers' end: only the main process is signalled, monitors and containers stay.
KillMode=process
TimeoutStartSec=0
TimeoutStopSec=30
Restart=always
RestartSec=1
# Containers have cgroups of their own; systemd keeps its hands off them.
Delegate=yes
TasksMax=infinity
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
OOMScoreAdjust=-500
# The mounts of containers must be visible to their runtimes: no private mount namespace.
PrivateMounts=no

[Install]
WantedBy=multi-user.target
"""

_SOCKET_UNIT = """\
# systemd listens and hands the socket to the daemon: clients that come while the daemon starts or restarts wait for it.
[Unit]
Description=Socket of the Husk container engine

[Socket]
ListenStream={socket}
SocketMode=0660
SocketUser=root
# Who is in this group is root on this host.
SocketGroup={group}
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"""

_SCRIPT = """\
#!/sbin/openrc-run
# The daemon as a service of OpenRC. `husk install` writes this file, and `husk uninstall` removes it: your own settings
# belong into /etc/husk/daemon.json, or into /etc/conf.d/husk.
name="Husk"
description="Husk container engine"
supervisor="supervise-daemon"
command={command}
command_args={arguments}
respawn_delay=1
respawn_max=3
respawn_period=60
output_log="${{HUSK_LOG:-/var/log/husk.log}}"
error_log="${{HUSK_LOG:-/var/log/husk.log}}"
rc_ulimit="-n 1048576"
# A daemon's end is not its containers' end: monitors and containers stay.
rc_cgroup_cleanup="no"
extra_started_commands="reload"
description_reload="Read the settings again"

depend() {{
\tneed sysfs cgroups
\tuse net logger
\tafter firewall nftables iptables
}}

reload() {{
\tebegin "Telling $RC_SVCNAME to read its settings again"
\tsupervise-daemon "$RC_SVCNAME" --signal HUP
\teend $?
}}
"""

_COMPLETIONS = {
    "bash": "share/bash-completion/completions/husk",
    "zsh": "share/zsh/site-functions/_husk",
    "fish": "share/fish/vendor_completions.d/husk.fish",
}


class InstalledFile(NamedTuple):
    """A file of ours: its path on the host, and what is in it."""

    path: str
    text: str
    mode: int = 0o644


def service(program: Sequence[str]) -> str:
    """The service unit, with the words that start husk."""
    return _SERVICE.format(program=" ".join(_quoted(word) for word in program))


def socket_unit(group: str) -> str:
    return _SOCKET_UNIT.format(socket=SOCKET, group=group)


def units(program: Sequence[str], group: str, directory: str = UNIT_DIRECTORY) -> Iterator[InstalledFile]:
    yield InstalledFile(f"{directory}/husk.socket", socket_unit(group))
    yield InstalledFile(f"{directory}/husk.service", service(program))


def script(program: Sequence[str], group: str) -> InstalledFile:
    """OpenRC's script, with the words that start husk."""
    arguments = [*program[1:], "serve", "--group", group]
    words = " ".join(shlex.quote(word) for word in arguments)
    return InstalledFile(SCRIPT, _SCRIPT.format(command=shlex.quote(program[0]), arguments=shlex.quote(words)), 0o755)


def reading(root: click.Context, prefix: str) -> Iterator[InstalledFile]:
    """Yield the files for shells and `man`, made from the commands themselves; `root` is click's context of `husk`."""

    for shell, place in _COMPLETIONS.items():
        yield InstalledFile(f"{prefix}/{place}", shells.script(root.command, shell))
    yield InstalledFile(f"{prefix}/share/man/man1/husk.1", "\n".join(page(root)) + "\n")


def _quoted(word: str) -> str:
    """A word as systemd reads it: its own marks doubled, in quotes where there is a blank."""
    plain = word.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$").replace('"', '\\"')
    return f'"{plain}"' if plain != word or " " in word else word
