"""What do Dockerfile instructions do to a configuration? For `commit` and import with `changes`. Pure."""

import posixpath
import re

import msgspec

from husk.engine.clock import parse_duration
from husk.engine.containers.model import Config, HealthConfig
from husk.engine.containers.signals import parse_signal
from husk.errors import InvalidParameter

_PORT = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?(?:/(tcp|udp|sctp))?", re.ASCII | re.IGNORECASE)
_WORD = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+""", re.DOTALL)


def apply_changes(config: Config, changes: list[str]) -> Config:
    """A copy of `config` with each instruction applied in order."""
    config = msgspec.structs.replace(
        config,
        env=list(config.env),
        labels=dict(config.labels),
        exposed_ports=dict(config.exposed_ports or {}) or None,
        volumes=dict(config.volumes or {}) or None,
        on_build=list(config.on_build or []) or None,
    )
    for change in changes:
        for line in _lines(change):
            _apply(config, line)
    return config


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\[ \t]*\n", "", text)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def _apply(config: Config, line: str) -> None:
    word, _, rest = line.partition(" ") if " " in line else line.partition("\t")
    instruction, rest = word.upper(), rest.strip()
    if instruction not in _INSTRUCTIONS:
        known = bool(re.fullmatch(r"FROM|RUN|COPY|ADD|ARG|MAINTAINER|SHELL", instruction))
        raise InvalidParameter(
            f"{instruction} is not a valid change command" if known else f"unknown instruction: {instruction}"
        )
    if not rest and instruction not in ("CMD", "ENTRYPOINT"):
        raise InvalidParameter(f"{instruction} requires at least one argument")
    _INSTRUCTIONS[instruction](config, rest)


def _command(config: Config, text: str) -> list[str]:
    """JSON form, or a line for the shell."""
    if text.startswith("["):
        try:
            words = msgspec.json.decode(text.encode(), type=list[str])
        except msgspec.DecodeError:
            pass
        else:
            return words
    return [*(config.shell or ["/bin/sh", "-c"]), text] if text else []


def _cmd(config: Config, text: str) -> None:
    config.cmd = _command(config, text)


def _entrypoint(config: Config, text: str) -> None:
    config.entrypoint = _command(config, text) or None


def _env(config: Config, text: str) -> None:
    for name, value in _pairs("ENV", text):
        config.env = [entry for entry in config.env if entry.partition("=")[0] != name] + [f"{name}={value}"]


def _label(config: Config, text: str) -> None:
    config.labels.update(_pairs("LABEL", text))


def _expose(config: Config, text: str) -> None:
    ports = dict(config.exposed_ports or {})
    for word in text.split():
        match = _PORT.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or not 0 < first <= last <= 65535:
            raise InvalidParameter(f"invalid containerPort: {word}")
        ports.update({f"{port}/{(match[3] or 'tcp').lower()}": {} for port in range(first, last + 1)})
    config.exposed_ports = ports


def _user(config: Config, text: str) -> None:
    if len(text.split()) != 1:
        raise InvalidParameter("USER requires exactly one argument")
    config.user = text


def _workdir(config: Config, text: str) -> None:
    config.working_dir = posixpath.normpath(posixpath.join(config.working_dir or "/", _unquote(text)))


def _volume(config: Config, text: str) -> None:
    paths = _command(config, text) if text.startswith("[") else text.split()
    if not all(path.strip() for path in paths):
        raise InvalidParameter("VOLUME specified can not be an empty string")
    config.volumes = {**(config.volumes or {}), **{path: {} for path in paths}}


def _onbuild(config: Config, text: str) -> None:
    trigger = text.split(None, 1)[0].upper()
    if trigger in ("ONBUILD", "MAINTAINER", "FROM"):
        raise InvalidParameter(f"{trigger} isn't allowed as an ONBUILD trigger")
    config.on_build = [*(config.on_build or []), text]


def _stopsignal(config: Config, text: str) -> None:
    parse_signal(text)
    config.stop_signal = text


def _healthcheck(config: Config, text: str) -> None:
    health = HealthConfig()
    while match := re.match(r"--(interval|timeout|start-period|start-interval|retries)=(\S+)\s+", text):
        option, value = match[1].replace("-", "_"), match[2]
        number = parse_duration(value) if option != "retries" else int(value) if value.isdigit() else None
        if number is None:
            raise InvalidParameter(f"invalid HEALTHCHECK option --{match[1]}={value}")
        setattr(health, option, number)
        text = text[match.end() :]
    kind, _, rest = text.partition(" ")
    if kind.upper() == "NONE" and not rest:
        config.healthcheck = HealthConfig(test=["NONE"])
        return
    if kind.upper() != "CMD" or not rest.strip():
        raise InvalidParameter(f'Unknown type "{kind}" in HEALTHCHECK (try CMD)')
    rest = rest.strip()
    health.test = ["CMD", *_command(config, rest)] if rest.startswith("[") else ["CMD-SHELL", rest]
    config.healthcheck = health


def _pairs(instruction: str, text: str) -> list[tuple[str, str]]:
    """`a=b "c d"=e`, or the old form `a b c` (one name, the rest its value)."""
    words = _WORD.findall(text)
    if words and "=" not in words[0]:
        name, _, value = text.partition(" ")
        if not value.strip():
            raise InvalidParameter(f"{instruction} must have two arguments")
        return [(name, value.strip())]
    pairs = []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not _unquote(name):
            raise InvalidParameter(f"Syntax error - can't find = in {word!r}. Must be of the form: name=value")
        pairs.append((_unquote(name), _unquote(value)))
    return pairs


def _unquote(text: str) -> str:
    def piece(match: re.Match[str]) -> str:
        part = match[0]
        if part.startswith("'"):
            return part[1:-1]
        if part.startswith('"'):
            return re.sub(r'\\(["\\$])', r"\1", part[1:-1])
        return part[1:]

    return re.sub(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", piece, text, flags=re.DOTALL)


_INSTRUCTIONS = {
    "CMD": _cmd,
    "ENTRYPOINT": _entrypoint,
    "ENV": _env,
    "EXPOSE": _expose,
    "HEALTHCHECK": _healthcheck,
    "LABEL": _label,
    "ONBUILD": _onbuild,
    "STOPSIGNAL": _stopsignal,
    "USER": _user,
    "VOLUME": _volume,
    "WORKDIR": _workdir,
}
