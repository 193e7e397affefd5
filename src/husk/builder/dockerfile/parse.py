"""From lines to stages of typed instructions."""

import re
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile import run_mounts
from husk.builder.dockerfile.directives import Directive
from husk.builder.dockerfile.errors import DockerfileError, suggestion
from husk.builder.dockerfile.instructions import CommandLine, CopiedFiles, From, Instruction, Origin, Stage
from husk.builder.dockerfile.lines import (
    FLAG,
    LIST,
    VALUE,
    Flags,
    Heredoc,
    Line,
    argument_words,
    blank_separated,
    heredoc_of,
    json_array,
    pairs,
    split,
)
from husk.builder.dockerfile.rules import Span
from husk.engine.model.clock import parse_duration

STAGE_NAME = re.compile(r"[a-z][a-z0-9-_.]*")
NETWORKS = ("default", "none", "host")
SECURITY = ("sandbox", "insecure")
SHORTEST_INTERVAL = 1_000_000  # nanoseconds
MOST_INSTRUCTIONS = 10_000
NO_STAGE = "no build stage in current context"
NO_TRIGGERS = ("MAINTAINER", "FROM")
_ONBUILD = re.compile(r"ONBUILD\s*", re.IGNORECASE)


class Dockerfile(Struct, frozen=True):
    directives: list[Directive]
    escape: str
    global_args: list[types.ArgInstruction]  # before the first FROM
    stages: list[Stage]
    empty_continuations: list[Span]


def parse(text: str) -> Dockerfile:
    lines = split(text)
    if len(lines.lines) > MOST_INSTRUCTIONS:
        raise DockerfileError(f"the Dockerfile has more than {MOST_INSTRUCTIONS} instructions")
    global_args: list[types.ArgInstruction] = []
    stages: list[Stage] = []
    for line in lines.lines:
        instruction = parse_line(line, lines.escape)
        if isinstance(instruction, From):
            stages.append(Stage(instruction, []))
        elif stages:
            stages[-1].instructions.append(instruction)
        elif isinstance(instruction, types.ArgInstruction):
            global_args.append(instruction)
        else:
            raise DockerfileError(NO_STAGE, line.span)
    return Dockerfile(lines.directives, lines.escape, global_args, stages, lines.empty_continuations)


def parse_trigger(text: str) -> Instruction:
    """Parse an instruction that an image left for builds on top of it (ONBUILD)."""
    lines = split(text)
    if len(lines.lines) != 1:
        raise DockerfileError(f"a trigger must be one instruction: {text!r}")
    instruction = parse_line(lines.lines[0], lines.escape)
    _check_trigger(instruction.origin.keyword.upper())
    return instruction


def parse_line(line: Line, escape: str) -> Instruction:
    reader = _READERS.get(line.keyword.upper())
    try:
        if reader is None:
            raise DockerfileError(f"unknown instruction: {line.keyword}{suggestion(line.keyword, _READERS)}")
        return reader(line, escape)
    except DockerfileError as error:
        raise error.at(line.span, unreadable=True) from None


# --- pieces ----------------------------------------------------------------------------------------------------------


def _origin(line: Line) -> Origin:
    return Origin(line.keyword, line.original.strip(), line.span, line.comments)


def _flags(line: Line, **known: str) -> Flags:
    return Flags(line.flags, {name.replace("_", "-"): kind for name, kind in known.items()})


def _one_argument(line: Line) -> str:
    _flags(line)
    if not line.rest:
        raise DockerfileError(f"{line.keyword.upper()} requires exactly one argument")
    return line.rest


def _command(line: Line) -> CommandLine:
    words = json_array(line.rest)
    if words is not None:
        return CommandLine(words, for_shell=False)
    return CommandLine([line.rest] if line.rest else [], for_shell=True, heredocs=line.heredocs)


def _list(line: Line) -> list[str]:
    words = json_array(line.rest)
    return blank_separated(line.rest) if words is None else words


def _description(line: Line, name: str) -> str:
    """A comment above that begins with the name tells what it is for."""
    for comment in line.comments if name else ():
        if comment.startswith(name + " "):
            return comment[len(name) + 1 :]
    return ""


# --- instructions ----------------------------------------------------------------------------------------------------


def _from(line: Line, escape: str) -> Instruction:
    words = blank_separated(line.rest)
    if len(words) == 3 and words[1].lower() == "as":
        name = words[2].lower()
        if not STAGE_NAME.fullmatch(name):
            message = f'invalid name for build stage: "{words[2]}", name can\'t start with a number or contain symbols'
            raise DockerfileError(message)
    elif len(words) == 1:
        name = ""
    else:
        raise DockerfileError("FROM requires either one or three arguments")
    flags = _flags(line, platform=VALUE)
    return From(
        _origin(line),
        base=words[0],
        name=name,
        platform=flags.value("platform"),
        description=_description(line, name),
        as_keyword=words[1] if name else "",
    )


def _arg(line: Line, escape: str) -> Instruction:
    _flags(line)
    words = argument_words(line.rest, escape)
    if not words:
        raise DockerfileError("ARG requires at least one argument")
    found: list[types.Arg] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not name:
            raise DockerfileError("ARG names can not be blank")
        found.append(types.Arg(name, value if equals else None, _description(line, name)))
    return types.ArgInstruction(_origin(line), args=found)


def _env(line: Line, escape: str) -> Instruction:
    _flags(line)
    return types.Env(_origin(line), pairs=pairs(line.rest, escape, "ENV"))


def _label(line: Line, escape: str) -> Instruction:
    _flags(line)
    return types.Label(_origin(line), pairs=pairs(line.rest, escape, "LABEL"))


def _maintainer(line: Line, escape: str) -> Instruction:
    return types.Maintainer(_origin(line), name=_one_argument(line))


def _files(line: Line) -> CopiedFiles:
    keyword = line.keyword.upper()
    words = _list(line)
    if len(words) < 2:
        raise DockerfileError(
            f"{keyword} requires at least two arguments, but only one was provided. Destination could not be determined"
        )
    *sources, destination = words
    if heredoc_of(destination):
        raise DockerfileError(f"{keyword} cannot accept a heredoc as a destination")
    texts = {heredoc.name: heredoc for heredoc in line.heredocs}
    paths: list[str] = []
    inline: list[Heredoc] = []
    for source in sources:
        announced = heredoc_of(source)
        if announced is None:
            paths.append(source)
        elif announced.name in texts:
            inline.append(texts[announced.name])
        else:
            raise DockerfileError(f"{keyword} has no text for the heredoc {source}")
    return CopiedFiles(paths, inline, destination)


def _with_files(
    kind: Callable[..., Instruction], line: Line, known: dict[str, str]
) -> tuple[Flags, Callable[..., Instruction]]:
    """Read the parts that COPY and ADD have in common; `known` are the flags that only one of them has."""
    files = _files(line)
    flags = _flags(line, chown=VALUE, chmod=VALUE, link=FLAG, exclude=LIST, **known)
    made = partial(
        kind,
        _origin(line),
        files=files,
        chown=flags.value("chown"),
        chmod=flags.value("chmod"),
        link=flags.is_true("link"),
        excludes=flags.values("exclude"),
    )
    return flags, made


def _copy(line: Line, escape: str) -> Instruction:
    flags, made = _with_files(types.Copy, line, {"from": VALUE, "parents": FLAG})
    return made(source=flags.value("from"), parents=flags.is_true("parents"))


def _add(line: Line, escape: str) -> Instruction:
    flags, made = _with_files(types.Add, line, {"checksum": VALUE, "keep_git_dir": FLAG, "unpack": FLAG})
    return made(
        checksum=flags.value("checksum"),
        keep_git_dir=flags.maybe_true("keep-git-dir"),
        unpack=flags.maybe_true("unpack"),
    )


def _run(line: Line, escape: str) -> Instruction:
    flags = _flags(line, mount=LIST, network=VALUE, security=VALUE, device=LIST)
    if "device" in flags:
        raise DockerfileError("RUN --device is not supported: this engine knows no CDI devices")
    network = flags.value("network") or "default"
    if network not in NETWORKS:
        raise DockerfileError(f'unsupported network mode "{network}"{suggestion(network, NETWORKS)}')
    security = flags.value("security") or "sandbox"
    if security not in SECURITY:
        raise DockerfileError(f'unsupported security mode "{security}"{suggestion(security, SECURITY)}')
    return types.Run(
        _origin(line),
        command=_command(line),
        mounts=[run_mounts.parse(text) for text in flags.values("mount")],
        network=network,
        security=security,
        flags=flags.names,
    )


def _cmd(line: Line, escape: str) -> Instruction:
    _flags(line)
    return types.Cmd(_origin(line), command=_command(line))


def _entrypoint(line: Line, escape: str) -> Instruction:
    _flags(line)
    return types.Entrypoint(_origin(line), command=_command(line))


def _shell(line: Line, escape: str) -> Instruction:
    _flags(line)
    words = json_array(line.rest)
    if words is None and line.rest:
        raise DockerfileError(f"SHELL requires the arguments to be in JSON form, not: {line.original.strip()}")
    if not words:
        raise DockerfileError("SHELL requires at least one argument")
    return types.Shell(_origin(line), words=words)


def _workdir(line: Line, escape: str) -> Instruction:
    return types.Workdir(_origin(line), path=_one_argument(line))


def _user(line: Line, escape: str) -> Instruction:
    return types.User(_origin(line), name=_one_argument(line))


def _volume(line: Line, escape: str) -> Instruction:
    _flags(line)
    paths = [path.strip() for path in _list(line)]
    if not paths:
        raise DockerfileError("VOLUME requires at least one argument")
    if not all(paths):
        raise DockerfileError("VOLUME specified can not be an empty string")
    return types.Volume(_origin(line), paths=paths)


def _expose(line: Line, escape: str) -> Instruction:
    _flags(line)
    ports = sorted(blank_separated(line.rest))
    if not ports:
        raise DockerfileError("EXPOSE requires at least one argument")
    return types.Expose(_origin(line), ports=ports)


def _stop_signal(line: Line, escape: str) -> Instruction:
    return types.StopSignal(_origin(line), signal=_one_argument(line))


def _health_check(line: Line, escape: str) -> Instruction:
    times = {"interval": VALUE, "timeout": VALUE, "start_period": VALUE, "start_interval": VALUE}
    kind, *behind = line.rest.split(maxsplit=1) or [""]
    command = "".join(behind)
    if kind.upper() == "NONE":
        if command:
            raise DockerfileError("HEALTHCHECK NONE takes no arguments")
        return types.HealthCheck(_origin(line), test=["NONE"])
    flags = _flags(line, **times, retries=VALUE)
    return types.HealthCheck(
        _origin(line),
        test=_health_test(kind, command),
        retries=_retries(flags.value("retries")),
        **{name: _interval(flags, name.replace("_", "-")) for name in times},
    )


def _health_test(kind: str, command: str) -> list[str]:
    if not kind:
        raise DockerfileError("HEALTHCHECK requires at least one argument")
    if kind.upper() != "CMD":
        raise DockerfileError(f'Unknown type "{kind.upper()}" in HEALTHCHECK (try CMD)')
    words = json_array(command)
    if words is None:
        words = ["CMD-SHELL", command] if command else []
    elif words:
        words = ["CMD", *words]
    if not words:
        raise DockerfileError("Missing command after HEALTHCHECK CMD")
    return words


def _interval(flags: Flags, name: str) -> int:
    text = flags.value(name)
    if not text:
        return 0
    interval = parse_duration(text)
    if interval is None:
        raise DockerfileError(f'time: invalid duration "{text}"')
    if interval and interval < SHORTEST_INTERVAL:
        raise DockerfileError(f'Interval "{name}" cannot be less than 1ms')
    return interval


def _retries(text: str) -> int:
    if not text:
        return 0
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise DockerfileError(f'--retries needs a number, not "{text}"')
    if int(text) < 0:
        raise DockerfileError(f"--retries cannot be negative ({text})")
    return int(text)


def _on_build(line: Line, escape: str) -> Instruction:
    _flags(line)
    if not line.rest:
        raise DockerfileError("ONBUILD requires at least one argument")
    _check_trigger(line.rest.split(maxsplit=1)[0].upper())
    texts = [f"\n{heredoc.content}{heredoc.name}" for heredoc in line.heredocs]
    trigger = _ONBUILD.sub("", line.original.lstrip(), count=1) + "".join(texts)
    return types.OnBuild(_origin(line), trigger=trigger)


def _check_trigger(keyword: str) -> None:
    if keyword == "ONBUILD":
        raise DockerfileError("Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed")
    if keyword in NO_TRIGGERS:
        raise DockerfileError(f"{keyword} isn't allowed as an ONBUILD trigger")


_READERS: dict[str, Callable[[Line, str], Instruction]] = {
    "ADD": _add,
    "ARG": _arg,
    "CMD": _cmd,
    "COPY": _copy,
    "ENTRYPOINT": _entrypoint,
    "ENV": _env,
    "EXPOSE": _expose,
    "FROM": _from,
    "HEALTHCHECK": _health_check,
    "LABEL": _label,
    "MAINTAINER": _maintainer,
    "ONBUILD": _on_build,
    "RUN": _run,
    "SHELL": _shell,
    "STOPSIGNAL": _stop_signal,
    "USER": _user,
    "VOLUME": _volume,
    "WORKDIR": _workdir,
}
