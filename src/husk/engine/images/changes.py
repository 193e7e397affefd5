"""Dockerfile instructions that change a configuration, for `commit` and `import` with `changes`. Pure."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from husk.engine.model.clock import parse_duration
from husk.engine.model.container_config import ContainerConfig, HealthConfig
from husk.engine.model.paths import clean
from husk.engine.model.signals import parse_signal
from husk.errors import InvalidParameter
from husk.text.documents import MalformedDocument, decode
from husk.text.patterns import pattern

_PORT = pattern(r"(\d{1,5})(?:-(\d{1,5}))?(?:/(tcp|udp|sctp))?", re.ASCII | re.IGNORECASE)
_TOKEN = pattern(
    r"""(?P<space>\s+)|'(?P<literal>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)"""
    r"""|(?P<variable>\$(?:\w+|\{[^}]*\}))|(?P<plain>[^\s'"\\$]+|[\\$])""",
    re.DOTALL | re.ASCII,
)
_IN_QUOTES = pattern(r"""\\(?P<escaped>["\\$])|(?P<variable>\$(?:\w+|\{[^}]*\}))""", re.ASCII)
_VARIABLE = pattern(r"\$(?:(\w+)|\{(\w+)(?::([-+])(.*))?\})", re.ASCII | re.DOTALL)
_MINIMUM = 1_000_000


def apply_changes(config: ContainerConfig, changes: Iterable[str]) -> ContainerConfig:
    """`config` with each instruction applied in order."""
    config = replace(config, labels=dict(config.labels))  # its own, for what many lines add to
    own_cmd = False
    for line in [line for change in changes for line in _lines(change)]:
        instruction, config = _apply(config, line)
        own_cmd = own_cmd or instruction == "CMD"
        if instruction == "ENTRYPOINT" and not own_cmd:
            # As in a Dockerfile: the arguments of another entrypoint mean nothing to a new one.
            config = replace(config, cmd=None)
    return config


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\[ \t]*\n", "", text)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def _apply(config: ContainerConfig, line: str) -> tuple[str, ContainerConfig]:
    """(the instruction, what it makes of the configuration)"""
    word, *others = line.split(None, 1)
    instruction, rest = word.upper(), "".join(others)
    if instruction not in _INSTRUCTIONS:
        raise InvalidParameter(f"{word} is not a valid change command")
    if not rest and instruction not in ("CMD", "ENTRYPOINT"):
        number = "exactly" if instruction in ("STOPSIGNAL", "USER", "WORKDIR") else "at least"
        raise InvalidParameter(f"{instruction} requires {number} one argument")
    return instruction, _INSTRUCTIONS[instruction](config, rest)


def _json_words(text: str) -> list[str] | None:
    """The words of the JSON form; None if the text is not in that form."""
    try:
        return decode(text.encode(), list[str])
    except MalformedDocument:
        return None


def _command(config: ContainerConfig, text: str) -> list[str]:
    """JSON form, or a line for the shell."""
    if (words := _json_words(text)) is not None:
        return words
    return [*(config.shell or ["/bin/sh", "-c"]), text] if text else []


def _cmd(config: ContainerConfig, text: str) -> ContainerConfig:
    return replace(config, cmd=_command(config, text))


def _entrypoint(config: ContainerConfig, text: str) -> ContainerConfig:
    return replace(config, entrypoint=_command(config, text) or None)


def _env(config: ContainerConfig, text: str) -> ContainerConfig:
    # One that is there keeps its place.
    entries = {entry.partition("=")[0]: entry for entry in config.env}
    entries.update({name: f"{name}={value}" for name, value in _pairs("ENV", text, config.env)})
    return replace(config, env=list(entries.values()))


def _label(config: ContainerConfig, text: str) -> ContainerConfig:
    config.labels.update(_pairs("LABEL", text, config.env))
    return config


def _expose(config: ContainerConfig, text: str) -> ContainerConfig:
    ports = dict(config.exposed_ports or {})
    for word in _words(text, config.env):
        match = _PORT.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or not 0 < first <= last <= 65535:
            raise InvalidParameter(f"invalid containerPort: {word}")
        ports.update({f"{port}/{(match[3] or 'tcp').lower()}": {} for port in range(first, last + 1)})
    return replace(config, exposed_ports=ports)


def _user(config: ContainerConfig, text: str) -> ContainerConfig:
    return replace(config, user=_single("USER", text, config.env))


def _workdir(config: ContainerConfig, text: str) -> ContainerConfig:
    return replace(config, working_dir=clean(posixpath.join(config.working_dir or "/", _expand(text, config.env))))


def _volume(config: ContainerConfig, text: str) -> ContainerConfig:
    paths = _json_words(text)
    if paths is None:
        paths = _words(text, config.env)
    if not all(path.strip() for path in paths):
        raise InvalidParameter("VOLUME specified can not be an empty string")
    return replace(config, volumes={**(config.volumes or {}), **{path: {} for path in paths}})


def _onbuild(config: ContainerConfig, text: str) -> ContainerConfig:
    trigger = text.split(None, 1)[0].upper()
    if trigger == "ONBUILD":
        raise InvalidParameter("Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed")
    if trigger in ("MAINTAINER", "FROM"):
        raise InvalidParameter(f"{trigger} isn't allowed as an ONBUILD trigger")
    return replace(config, on_build=[*(config.on_build or []), text])


def _stopsignal(config: ContainerConfig, text: str) -> ContainerConfig:
    signal = _single("STOPSIGNAL", text, config.env)
    parse_signal(signal)
    return replace(config, stop_signal=signal)


def _healthcheck(config: ContainerConfig, text: str) -> ContainerConfig:
    numbers = {}
    while match := re.match(r"--(interval|timeout|start-period|start-interval|retries)=(\S+)\s+", text):
        numbers[match[1].replace("-", "_")] = _health_number(match[1], match[2])
        text = text[match.end() :]
    kind, *others = text.split(None, 1)
    rest = "".join(others)
    if kind.upper() == "NONE":
        if rest:
            raise InvalidParameter("HEALTHCHECK NONE takes no arguments")
        return replace(config, healthcheck=HealthConfig(test=["NONE"]))
    if kind.upper() != "CMD":
        raise InvalidParameter(f'Unknown type "{kind.upper()}" in HEALTHCHECK (try CMD)')
    words = _json_words(rest)
    if not rest or words == []:
        raise InvalidParameter("Missing command after HEALTHCHECK CMD")
    test = ["CMD-SHELL", rest] if words is None else ["CMD", *words]
    return replace(config, healthcheck=HealthConfig(test=test, **numbers))


def _health_number(option: str, value: str) -> int:
    if option == "retries":
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise InvalidParameter(f"--retries cannot be {value}: expected a number that is not negative")
        return int(value)
    duration = parse_duration(value)
    if duration is None:
        raise InvalidParameter(f'time: invalid duration "{value}"')
    if duration and duration < _MINIMUM:
        raise InvalidParameter(f'Interval "{option}" cannot be less than 1ms')
    return duration


def _pairs(instruction: str, text: str, env: Sequence[str]) -> list[tuple[str, str]]:
    """`a=b "c d"=e`, or the old form `a b c` (one name, the rest its value)."""
    words = _words(text, env)
    if "=" not in words[0]:
        name, *others = text.split(None, 1)
        if not others:
            raise InvalidParameter(f"{instruction} must have two arguments")
        return [(_expand(name, env), _expand(others[0], env))]
    pairs = []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            raise InvalidParameter(f'Syntax error - can\'t find = in "{word}". Must be of the form: name=value')
        if not name:
            raise InvalidParameter(f"{instruction} names can not be blank")
        pairs.append((name, value))
    return pairs


def _single(instruction: str, text: str, env: Sequence[str]) -> str:
    words = _words(text, env)
    if len(words) != 1:
        raise InvalidParameter(f"{instruction} requires exactly one argument")
    return words[0]


# --- words: quotes go, variables become their values


def _words(text: str, env: Sequence[str]) -> list[str]:
    words: list[str] = []
    inside = False
    for piece, is_space in _pieces(text, env):
        if is_space:
            inside = False
        elif inside:
            words[-1] += piece
        else:
            words.append(piece)
            inside = True
    return words


def _expand(text: str, env: Sequence[str]) -> str:
    return "".join(piece for piece, _ in _pieces(text, env))


def _pieces(text: str, env: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """(text, is it space between words?)"""
    values = {name: value for name, _, value in (entry.partition("=") for entry in env)}
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            kind = "double" if text[position] == '"' else "single"
            raise InvalidParameter(f"unexpected end of statement while looking for matching {kind}-quote")
        position = match.end()
        yield _resolve(match, values), match.lastgroup == "space"


def _resolve(match: re.Match[str], values: dict[str, str]) -> str:
    text = match[match.lastgroup or 0]
    if match.lastgroup == "variable":
        return _value(text, values)
    if match.lastgroup == "quoted":
        return _IN_QUOTES.sub(lambda inner: _resolve(inner, values), text)
    return text


def _value(text: str, values: dict[str, str]) -> str:
    """Of `$name`, `${name}`, `${name:-default}` or `${name:+replacement}`."""
    match = _VARIABLE.fullmatch(text)
    if match is None:
        raise InvalidParameter(f"unsupported modifier in substitution: {text}")
    value = values.get(match[1] or match[2], "")
    if match[3] == "-":
        return value or match[4]
    if match[3] == "+":
        return match[4] if value else ""
    return value


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
