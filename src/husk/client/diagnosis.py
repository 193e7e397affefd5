"""Reasons for which a container does not run. The rules are pure: from what the API tells to sentences, each with what
to do; `examine` asks the engine for what they need."""

import ipaddress
import re
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from husk.client.client import Client
from husk.client.container import Container
from husk.errors import HuskError, NotFound

Document = dict[str, Any]

# Lines of a log that are shown beside the reasons.
LAST_LINES = 10

# Names of the same architecture, as kernels and images have them.
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386", "i386": "386"}
_LISTENER = re.compile(r"\s*\d+: ((?:[0-9A-F]{8}){1,4}):([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 0A ")
# What shells and runtimes say of a program that is not there.
_MISSING = re.compile(
    r'exec: "([^"]+)": (?:executable file not found|stat )|(?:^|[\s:])([\w./-]+): (?:command )?not found(?:$|\s)'
)
_SHELLS = ("sh", "bash", "ash", "dash", "zsh", "fish")


class Reason(NamedTuple):
    """A line of the report, as that of the host has them: `poor` is worth knowing, `bad` is why it does not run."""

    name: str
    verdict: Literal["ok", "poor", "bad"]
    detail: str
    cure: str = ""


class ContainerFacts(NamedTuple):
    """The engine's answers about a container: documents as the API has them."""

    container: Document
    image: Document | None
    info: Document
    others: Sequence[Document] = ()
    # Sources of bind mounts that are not there; only known where the engine is on this host.
    gone: Sequence[str] = ()
    # Where TCP is listened for in it, as (address, port); None where that is not known.
    listening: Sequence[tuple[str, int]] | None = None
    # The script that it runs, and the interpreter that is named in it and is not there.
    script: str = ""
    interpreter: str = ""


async def examine(engine: Client, container: Container) -> ContainerFacts:
    """Ask the engine all that tells how a container is."""
    try:
        image = (await engine.images.get(str(container.attrs.get("Image") or container.image))).attrs
    except NotFound:
        image = None
    others = [other.attrs for other in await engine.containers.list()]
    return ContainerFacts(container.attrs, image, await engine.info(), others)


async def last_lines(container: Container, count: int = LAST_LINES) -> list[str]:
    """The end of its log; nothing where the log driver does not give back what it was given."""
    try:
        return [line async for line in container.logs(tail=count).lines()]
    except HuskError:
        return []


# What engines and runtimes say, and what it means.
_ERRORS = (
    (
        r"exec format error",
        "program",
        "its program is for another architecture, or a script without #! in its first line",
        "look at the architecture of the image, and at the first line of the script",
    ),
    (
        r"executable file .*not found|\bexec:? .*no such file or directory|executable.*no such file",
        "program",
        "its program is not in the image, or a script's interpreter is not",
        "look at the spelling and at PATH: husk run --rm -it --entrypoint sh IMAGE",
    ),
    (
        r"permission denied.*exec|exec.*permission denied|executable file .*permission denied",
        "program",
        "its program may not be executed",
        "chmod +x it in the image, and choose another user than --user where that one may not",
    ),
    (
        r"address already in use|port is already allocated",
        "ports",
        "a port that it publishes is taken",
        "choose another with -p, or stop who has it (ss -ltnup tells which program)",
    ),
    (
        r"bind source path does not exist|invalid mount config|error mounting|mount .*no such file",
        "mounts",
        "something that it mounts is not there",
        "make it again, or make the container anew with -v and what is there",
    ),
    (
        r"chdir .*no such file|working directory|cwd",
        "directory",
        "its working directory is not there",
        "make it in the image, or choose another with -w",
    ),
    (
        r"unable to find user|no matching entries in passwd|no such user",
        "user",
        "its user is not in the image's /etc/passwd",
        "choose one that is there with --user, or a number",
    ),
    (r"no space left", "disk", "the disk is full", "husk df tells what takes room, husk prune removes what is unused"),
    (r"network .*not found|no such network", "network", "its network is gone", "make it again, or husk run anew"),
    (r"cannot allocate memory|memory limit", "memory", "it gets too little memory even to start", "more with -m"),
)


def explain(facts: ContainerFacts) -> list[Reason]:
    """Reasons in the order in which a reader should look at them; `bad` ones keep it from running."""
    state = facts.container.get("State") or {}
    found = [*_script(facts), *_error(state), *_architecture(facts), *_mounts(facts), *_ports(facts, state)]
    return [
        *_state(facts.container, state),
        *found,
        *_exit(facts.container, state, any(each.verdict == "bad" for each in found)),
        *_listeners(facts, state),
        *_health(state),
    ]


def _state(container: Document, state: Document) -> Iterator[Reason]:
    status, name = str(state.get("Status", "")), str(container.get("Name", "")).removeprefix("/")
    restarts = int(container.get("RestartCount") or 0)
    policy = ((container.get("HostConfig") or {}).get("RestartPolicy") or {}).get("Name") or "no"
    if status == "paused":
        yield Reason("state", "bad", "it is paused", f"husk unpause {name}")
    elif status == "running":
        yield Reason("state", "ok", f"it runs since {state.get('StartedAt', '')}")
    elif status == "created" and not state.get("Error"):
        yield Reason("state", "bad", "it was made and never started", f"husk start {name}")
    elif status == "created":
        yield Reason("state", "bad", "it was made, and could not be started")
    elif status == "restarting":
        yield Reason("state", "bad", "it ends again and again, and waits for its next start", f"husk logs {name}")
    else:
        yield Reason("state", "bad", f"it is {status or 'unknown'}, since {state.get('FinishedAt', '')}")
    if restarts and policy != "no":
        verdict: Literal["poor", "bad"] = "poor" if status == "running" else "bad"
        cure = f"husk stop {name} ends the loop"
        yield Reason("restarts", verdict, f"it was restarted {restarts} times (--restart {policy})", cure)


def _script(facts: ContainerFacts) -> Iterator[Reason]:
    """Tell of the interpreter of a script, which runtimes report as if the script were missing."""
    if not facts.interpreter:
        return
    if facts.interpreter.endswith("\r"):
        cure = f"write {facts.script} with the ends of lines of Unix: dos2unix, or autocrlf=input for git"
        yield Reason("program", "bad", f"the script {facts.script} has Windows' ends of lines", cure)
        return
    detail = f"the script {facts.script} wants {facts.interpreter}, which is not in the image"
    yield Reason("program", "bad", detail, f"install {facts.interpreter} in the image, or name another in the #! line")


def _listeners(facts: ContainerFacts, state: Document) -> Iterator[Reason]:
    """Tell of published ports that lead to nobody."""
    if not state.get("Running") or facts.listening is None:
        return
    ports = ((facts.container.get("NetworkSettings") or {}).get("Ports")) or {}
    for inside, bindings in sorted(ports.items()):
        number, _, kind = inside.partition("/")
        if not bindings or kind != "tcp":
            continue
        outside = bindings[0].get("HostPort")
        addresses = [address for address, port in facts.listening if str(port) == number]
        if not addresses:
            others = sorted({port for address, port in facts.listening if not _is_local(address)})
            told = f"; it listens on {', '.join(map(str, others))}" if others else ""
            detail = f"nothing in it listens on port {number}, which is published as {outside}{told}"
            yield Reason("ports", "poor", detail, "publish the port that its program listens on, or wait until it does")
        elif all(_is_local(address) for address in addresses):
            detail = f"its program listens on {addresses[0]} only, so that the published port {outside} reaches nobody"
            yield Reason("ports", "poor", detail, "let it listen on 0.0.0.0, or on ::")


def _is_local(address: str) -> bool:
    return address.startswith("127.") or address == "::1"


def listeners(table: str) -> Iterator[tuple[str, int]]:
    """Yield who is listened for, out of `/proc/net/tcp` and `/proc/net/tcp6`."""
    for line in table.splitlines():
        if found := _LISTENER.match(line):
            raw = bytes.fromhex(found[1])
            words = b"".join(raw[place : place + 4][::-1] for place in range(0, len(raw), 4))
            yield str(ipaddress.ip_address(words)), int(found[2], 16)


def _error(state: Document) -> Iterator[Reason]:
    """Tell the engine's words when it could not start the container, and their meaning."""
    if not (error := str(state.get("Error") or "").strip()):
        return
    for pattern, name, meaning, cure in _ERRORS:
        if re.search(pattern, error, re.IGNORECASE):
            yield Reason(name, "bad", f"{meaning}. The engine said: {error}", cure)
            return
    yield Reason("start", "bad", f"the engine could not start it: {error}")


def _architecture(facts: ContainerFacts) -> Iterator[Reason]:
    if facts.image is None:
        named = (facts.container.get("Config") or {}).get("Image", "")
        yield Reason("image", "poor", f"its image {named} is no longer here", f"husk pull {named}")
        return
    built, host = str(facts.image.get("Architecture") or ""), str(facts.info.get("Architecture") or "")
    here = _MACHINES.get(host, host)
    if built and here and built != here and (built, here) != ("386", "amd64"):
        cure = f"pull it with --platform linux/{here}, or install qemu-user-static to emulate {built}"
        yield Reason("architecture", "bad", f"the image is for {built}, this host is {here}", cure)


def _mounts(facts: ContainerFacts) -> Iterator[Reason]:
    for source in facts.gone:
        yield Reason("mounts", "bad", f"what it mounts is not there any more: {source}", f"make {source} again")


def _ports(facts: ContainerFacts, state: Document) -> Iterator[Reason]:
    """Ports of the host that it wants and another container has."""
    if state.get("Running"):
        return
    wanted = {
        (str(each.get("HostPort")), inside.rpartition("/")[2] or "tcp")
        for inside, bindings in ((facts.container.get("HostConfig") or {}).get("PortBindings") or {}).items()
        for each in bindings or ()
        if each.get("HostPort") not in (None, "", "0")
    }
    for other in facts.others:
        if other.get("Id") == facts.container.get("Id"):
            continue
        has = {(str(port.get("PublicPort")), str(port.get("Type"))) for port in other.get("Ports") or ()}
        for number, kind in sorted(wanted & has):
            name = str((other.get("Names") or ["another container"])[0]).removeprefix("/")
            cure = f"husk stop {name}, or publish another port"
            yield Reason("ports", "bad", f"the port {number}/{kind} that it publishes is taken by {name}", cure)


def _exit(container: Document, state: Document, explained: bool) -> Iterator[Reason]:
    if state.get("Status") not in ("exited", "dead", "restarting"):
        return
    code = int(state.get("ExitCode") or 0)
    config, host = container.get("Config") or {}, container.get("HostConfig") or {}
    command = [*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())]
    if state.get("OOMKilled"):
        limit = int(host.get("Memory") or 0)
        told = f"its limit is {limit / 2**20:g} MiB" if limit else "it has no limit, so it was the host's"
        yield Reason("memory", "bad", f"it ran out of memory: {told}", "give it more with -m, or let it use less")
    elif code == 0:
        detail = "it ended by itself with status 0: its program had no more to do"
        if command and command[-1].rpartition("/")[2] in _SHELLS and not config.get("OpenStdin"):
            yield Reason(
                "exit", "bad", f"{detail}. A shell without a terminal ends at once", "husk run -it, or a command"
            )
        else:
            yield Reason("exit", "poor", detail)
    elif not (explained and code in (125, 126, 127, 128)):
        yield Reason("exit", "bad", *_meaning(code, command))


def _meaning(code: int, command: Sequence[str]) -> tuple[str, str]:
    """Of an exit code that is not 0, with what to do."""
    first = command[0] if command else "its program"
    if code == 125:
        return "status 125: the engine could not start it", "husk start it again, which tells why"
    if code == 126:
        return f"status 126: {first} is there and cannot be executed", "chmod +x it, and look at its first line"
    if code == 127:
        return f"status 127: {first}, or a command in it, is not there", "look at the spelling and at PATH in the image"
    if code == 137:
        return "status 137: it was killed (SIGKILL), not by its own memory limit", (
            "husk kill and husk stop after its time do that, and the kernel when the host has no memory (dmesg)"
        )
    if code == 139:
        return "status 139: it crashed (SIGSEGV)", "a bug of the program, or libraries of another architecture"
    if 128 < code < 128 + signal.NSIG:
        try:
            return (
                f"status {code}: it was ended by {signal.Signals(code - 128).name}",
                "husk stop and husk kill do that",
            )
        except ValueError:
            pass
    return f"it ended with status {code}, which is its program's own word", "its last lines tell more"


def _health(state: Document) -> Iterator[Reason]:
    health = state.get("Health") or {}
    if health.get("Status") == "unhealthy":
        last = (health.get("Log") or [{}])[-1]
        said = " ".join(str(last.get("Output") or "").split())[:200]
        if missing := _MISSING.search(said):
            program = missing[1] or missing[2]
            detail = f"its health check runs {program}, which is not in the image: it fails whatever the container does"
            yield Reason("health", "poor", detail, f"install {program} in the image, or check with what is there")
            return
        detail = f"its health check fails, the last {health.get('FailingStreak', 0)} times: {said or 'without a word'}"
        yield Reason("health", "poor", detail, "run the check by hand with husk exec")
