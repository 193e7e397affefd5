"""The instructions that change an image's configuration and no file."""

import re

from husk.builder.dockerfile import history
from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.checks import check_port
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.state import StageState
from husk.builder.dockerfile.words import expand
from husk.engine.model.container_config import HealthConfig
from husk.engine.model.signals import parse_signal
from husk.errors import HuskError

PROTOCOLS = ("tcp", "udp", "sctp")
HIGHEST = 65535
_FORM = re.compile(
    r"(?:(?P<address>.*):)??(?:(?P<host>[\d-]*):)?(?P<first>\d{1,5})(?:-(?P<last>\d{1,5}))?(?:/(?P<protocol>\w+))?",
    re.ASCII,
)


def configure(state: StageState, instruction: types.Instruction) -> None:
    config = state.config
    match instruction:
        case types.Env():
            # Values are expanded by what was there before this line.
            pairs = [(state.text(pair.name), state.text(pair.value)) for pair in instruction.pairs]
            for name, value in pairs:
                state.set_env(name, value)
            state.remember(" ".join(["ENV", *(f"{name}={value}" for name, value in pairs)]))
        case types.Label():
            labels = [(state.text(pair.name), state.text(pair.value)) for pair in instruction.pairs]
            config.labels.update(labels)  # of the stage alone, as below
            state.remember(" ".join(["LABEL", *(f"{name}={value}" for name, value in labels)]))
        case types.Cmd():
            words = _command(state, instruction)
            state.configure(cmd=words, args_escaped=True)
            state.own_cmd = True
            state.remember(f"CMD {history.quoted(words)}")
        case types.Entrypoint():
            words = _command(state, instruction)
            state.configure(entrypoint=words or None, cmd=config.cmd if state.own_cmd else None)
            state.remember(f"ENTRYPOINT {history.quoted(words)}")
        case types.Shell():
            state.configure(shell=list(instruction.words))
            state.remember(f"SHELL {history.plain(instruction.words)}")
        case types.User():
            user = state.text(instruction.name)
            state.configure(user=user)
            state.remember(f"USER {user}")
        case types.Volume():
            paths = [state.text(path) for path in instruction.paths]
            if not all(paths):
                raise DockerfileError("VOLUME specified can not be an empty string")
            # Put beside those of other lines, in what the stage alone has: a copy for each line would take long.
            volumes = config.volumes or {}
            volumes.update((path, {}) for path in paths)
            state.configure(volumes=volumes)
            state.remember(f"VOLUME {history.plain(paths)}")
        case types.Expose():
            exposed = _exposed(state, instruction)
            ports = config.exposed_ports or {}
            ports.update((port, {}) for port in exposed)
            state.configure(exposed_ports=ports)
            state.remember(f"EXPOSE {history.plain(exposed)}")
        case types.StopSignal():
            signal = _signal(state.text(instruction.signal))
            state.configure(stop_signal=signal)
            state.remember(f"STOPSIGNAL {signal}")
        case types.HealthCheck():
            check = HealthConfig(
                test=instruction.test,
                interval=instruction.interval,
                timeout=instruction.timeout,
                retries=instruction.retries,
                start_period=instruction.start_period,
                start_interval=instruction.start_interval,
            )
            state.configure(healthcheck=check)
            state.remember(history.health_check(check))
        case types.OnBuild():
            triggers = config.on_build or []
            triggers.append(instruction.trigger)
            state.configure(on_build=triggers)
        case types.Maintainer():
            state.image.author = instruction.name
            state.remember(f"MAINTAINER {instruction.name}")
        case _:
            raise DockerfileError(f"{instruction.origin.keyword} cannot stand here")


def _exposed(state: StageState, instruction: types.Expose) -> list[str]:
    """Return the ports. Nothing is told of variables in them that are not set: nor does the reference."""
    found: list[str] = []
    for port in instruction.ports:
        for word in expand(port, state.env, state.rules).words:
            check_port(instruction.origin, word, state.checks)
            found += parse_ports(word)
    return found


def _command(state: StageState, instruction: types.Cmd | types.Entrypoint) -> list[str]:
    command = instruction.command
    if command.for_shell and not state.config.shell:
        keyword = instruction.origin.keyword
        message = f"JSON arguments recommended for {keyword} to prevent unintended behavior related to OS signals"
        state.checks.warn("JSONArgsRecommended", instruction.origin, message)
    return [*state.shell, " ".join(command.words)] if command.for_shell else list(command.words)


def _signal(text: str) -> str:
    try:
        parse_signal(text)
    except HuskError as error:
        raise DockerfileError(str(error)) from None
    return text


def parse_ports(text: str) -> list[str]:
    """Read the ports of an `EXPOSE`: `80` is 80/tcp, `80-82/udp` three ports; a host's part means nothing here."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise DockerfileError(f"invalid containerPort: {text}")
    protocol = (found["protocol"] or "tcp").lower()
    if protocol not in PROTOCOLS:
        raise DockerfileError(f'invalid port: "{text}": invalid proto: {found["protocol"]}')
    first = int(found["first"])
    last = int(found["last"] or first)
    if not first <= last <= HIGHEST:
        raise DockerfileError(f"invalid containerPort: {text}")
    return [f"{port}/{protocol}" for port in range(first, last + 1)]
