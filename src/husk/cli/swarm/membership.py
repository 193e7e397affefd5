"""`husk swarm`: a swarm made, joined, left and changed."""

import sys
from typing import Any

import click

from husk.cli.kit.command import HuskCommand, as_json, flag, many, number, text
from husk.cli.kit.engine import ask
from husk.cli.kit.files import content_of
from husk.cli.kit.place import HostChoice
from husk.cli.kit.read import seconds
from husk.cli.kit.writing import document, say
from husk.client.client import Client
from husk.errors import InvalidParameter

_ADVERTISE = text("--advertise-addr", help="Advertised address (format: <ip|interface>[:port]).")
_AVAILABILITY = text("--availability", help="Availability of the node (active, pause, drain).")
_DATA_PATH = text("--data-path-addr", help="Address or interface to use for data path traffic.")
_EXPIRY = text("--cert-expiry", metavar="DURATION", help="Validity period for node certificates (ns|us|ms|s|m|h).")
_HEARTBEAT = text("--dispatcher-heartbeat", metavar="DURATION", help="Dispatcher heartbeat period (ns|us|ms|s|m|h).")
_HISTORY = number("--task-history-limit", help="Task history retention limit.")
_LISTEN = text("--listen-addr", default="0.0.0.0:2377", help="Listen address (format: <ip|interface>[:port]).")
_QUIET = flag("-q", "--quiet", help="Only display token.")


@click.command(cls=HuskCommand)
@_ADVERTISE
@flag("--autolock", help="Enable manager autolocking (requiring an unlock key to start a stopped manager).")
@_AVAILABILITY
@_EXPIRY
@_DATA_PATH
@number("--data-path-port", default=0, help="Port number to use for data path traffic (1024 - 49151).")
@many("--default-addr-pool", help="Default address pool in CIDR format.")
@number("--default-addr-pool-mask-length", default=24, help="Default address pool subnet mask length.")
@_HEARTBEAT
@flag("--force-new-cluster", help="Force create a new cluster from current state.")
@_LISTEN
@_HISTORY
@as_json
@click.pass_obj
def init(place: HostChoice, /, as_json: bool, **flags: Any) -> None:
    """Initialize a swarm."""
    pools = [part for each in flags["default_addr_pool"] for part in each.split(",")]

    async def made(engine: Client) -> None:
        node = await engine.swarm.init(
            **{name: flags[name] for name in ("advertise_addr", "listen_addr", "data_path_addr", "data_path_port")},
            **{name: flags[name] for name in ("availability", "force_new_cluster")},
            autolock_managers=flags["autolock"],
            default_addr_pool=pools,
            subnet_size=flags["default_addr_pool_mask_length"],
            task_history_retention_limit=flags["task_history_limit"],
            spec=_spec(flags),
        )
        if as_json:
            document({"Node": node})
            return
        say(f"Swarm initialized: current node ({node}) is now a manager.\n")
        await _how_to_join(engine, "worker")
        say("To add a manager to this swarm, run 'husk swarm join-token manager' and follow the instructions.")
        if flags["autolock"]:
            say()
            await _how_to_unlock(engine)

    ask(place, made)


def _spec(flags: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if flags["cert_expiry"]:
        found["CAConfig"] = {"NodeCertExpiry": round(seconds(flags["cert_expiry"], "--cert-expiry") * 10**9)}
    if flags["dispatcher_heartbeat"]:
        heartbeat = seconds(flags["dispatcher_heartbeat"], "--dispatcher-heartbeat")
        found["Dispatcher"] = {"HeartbeatPeriod": round(heartbeat * 10**9)}
    return found


@click.command(cls=HuskCommand)
@_ADVERTISE
@_AVAILABILITY
@_DATA_PATH
@_LISTEN
@text("--token", help="Token for entry into the swarm.")
@click.argument("address", metavar="HOST:PORT")
@click.pass_obj
def join(place: HostChoice, /, address: str, token: str, **flags: Any) -> None:
    """Join a swarm as a node and/or manager."""
    if not token:
        raise InvalidParameter("--token is needed: `husk swarm join-token worker` on a manager tells it")

    async def joined(engine: Client) -> None:
        await engine.swarm.join([address], token, **flags)
        swarm = (await engine.info()).get("Swarm") or {}
        role = "manager" if swarm.get("ControlAvailable") else "worker"
        say(f"This node joined a swarm as a {role}.")

    ask(place, joined)


@click.command("join-token", cls=HuskCommand)
@_QUIET
@flag("--rotate", help="Rotate join token.")
@click.argument("role", metavar="(worker|manager)")
@click.pass_obj
def join_token(place: HostChoice, /, role: str, quiet: bool, rotate: bool) -> None:
    """Manage join tokens."""
    if role not in ("worker", "manager"):
        raise InvalidParameter(f"unknown role {role}: expected worker or manager")

    async def told(engine: Client) -> None:
        if rotate:
            await engine.swarm.update(rotate_worker_token=role == "worker", rotate_manager_token=role == "manager")
            if not quiet:
                say(f"Successfully rotated {role} join token.\n")
        if quiet:
            say((await engine.swarm.inspect())["JoinTokens"][role.capitalize()])
        else:
            await _how_to_join(engine, role)

    ask(place, told)


async def _how_to_join(engine: Client, role: str) -> None:
    token = (await engine.swarm.inspect())["JoinTokens"][role.capitalize()]
    node = (await engine.nodes.get("self")).attrs
    address = (node.get("ManagerStatus") or {}).get("Addr") or "HOST:2377"
    say(f"To add a {role} to this swarm, run the following command:\n\n    husk swarm join --token {token} {address}\n")


async def _how_to_unlock(engine: Client) -> None:
    key = await engine.swarm.get_unlock_key()
    say("To unlock a swarm manager after it restarts, run the `husk swarm unlock`")
    say(f"command and provide the following key:\n\n    {key}\n")
    say("Remember to store this key in a password manager, since without it you")
    say("will not be able to restart the manager.")


@click.command(cls=HuskCommand)
@flag("-f", "--force", help="Force this node to leave the swarm, ignoring warnings.")
@click.pass_obj
def leave(place: HostChoice, /, force: bool) -> None:
    """Leave the swarm."""

    async def left(engine: Client) -> None:
        await engine.swarm.leave(force=force)
        say("Node left the swarm.")

    ask(place, left)


@click.command(cls=HuskCommand)
@click.pass_obj
def unlock(place: HostChoice, /) -> None:
    """Unlock swarm."""
    terminal = sys.stdin.isatty()
    key = click.prompt("Enter unlock key", hide_input=True, err=True) if terminal else sys.stdin.readline().strip()

    async def unlocked(engine: Client) -> None:
        await engine.swarm.unlock(key)

    ask(place, unlocked)


@click.command("unlock-key", cls=HuskCommand)
@_QUIET
@flag("--rotate", help="Rotate unlock key.")
@click.pass_obj
def unlock_key(place: HostChoice, /, quiet: bool, rotate: bool) -> None:
    """Manage the unlock key."""

    async def told(engine: Client) -> None:
        if rotate:
            await engine.swarm.update(rotate_manager_unlock_key=True)
            if not quiet:
                say("Successfully rotated manager unlock key.\n")
        key = await engine.swarm.get_unlock_key()
        if not key:
            raise InvalidParameter("no unlock key is set: `husk swarm update --autolock` makes one")
        if quiet:
            say(key)
        else:
            await _how_to_unlock(engine)

    ask(place, told)


@click.command(cls=HuskCommand)
@flag("--autolock", default=None, help="Change manager autolocking setting (true|false).")
@_EXPIRY
@_HEARTBEAT
@_HISTORY
@click.pass_obj
def update(place: HostChoice, /, **flags: Any) -> None:
    """Update the swarm."""
    expiry, heartbeat = flags["cert_expiry"], flags["dispatcher_heartbeat"]
    settings = {
        "autolock_managers": flags["autolock"],
        "node_cert_expiry": seconds(expiry, "--cert-expiry") if expiry else None,
        "dispatcher_heartbeat_period": seconds(heartbeat, "--dispatcher-heartbeat") if heartbeat else None,
        "task_history_retention_limit": flags["task_history_limit"],
    }

    async def updated(engine: Client) -> None:
        await engine.swarm.update(**settings)
        say("Swarm updated.")
        if flags["autolock"]:
            await _how_to_unlock(engine)

    ask(place, updated)


@click.command(cls=HuskCommand)
@text("--ca-cert", metavar="FILE", help="PEM-formatted root CA certificate to use for the new cluster.")
@text("--ca-key", metavar="FILE", help="PEM-formatted root CA key to use for the new cluster.")
@_EXPIRY
@flag("-d", "--detach", help="Exit immediately instead of waiting for the root rotation to converge.")
@flag("-q", "--quiet", help="Suppress progress output.")
@flag("--rotate", help="Rotate the swarm CA.")
@click.pass_obj
def ca(place: HostChoice, /, ca_cert: str, ca_key: str, cert_expiry: str, rotate: bool, **_: Any) -> None:
    """Display and rotate the root CA."""
    for name, given in (("cert-expiry", cert_expiry), ("ca-cert", ca_cert), ("ca-key", ca_key)):
        if given and not rotate:
            raise InvalidParameter(f"`--{name}` flag requires the `--rotate` flag to update the CA")
    signing = {"SigningCACert": ca_cert, "SigningCAKey": ca_key}
    own = {key: content_of(file).decode(errors="replace") for key, file in signing.items() if file}

    async def told(engine: Client) -> None:
        if rotate:
            config = ((await engine.swarm.inspect())["Spec"].get("CAConfig")) or {}
            config["ForceRotate"] = int(config.get("ForceRotate") or 0) + 1
            expiry = seconds(cert_expiry, "--cert-expiry") if cert_expiry else None
            await engine.swarm.update(spec={"CAConfig": {**config, **own}}, node_cert_expiry=expiry)
        say(((await engine.swarm.inspect()).get("TLSInfo") or {}).get("TrustRoot") or "", end="")

    ask(place, told)
