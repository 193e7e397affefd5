"""The flags of `husk service create` and `update`, and what they write into a service's document. Pure but for files.

A flag is a line of a table: its word, its form, and its place in the document. Those of `_LISTS` are one word for
`create` (`--env`), and two for `update` (`--env-add`, `--env-rm`).
"""

import copy
import csv
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from husk.cli.containers.environment import environment
from husk.cli.containers.mounts import mount as mount_of
from husk.cli.containers.spec import cpus_of, size_of
from husk.cli.kit.command import Flag
from husk.cli.kit.read import seconds
from husk.client.spec import mount_document, nanoseconds
from husk.errors import InvalidParameter
from husk.text.digits import read_number

Document = dict[str, Any]
_NANO = 1_000_000_000
_C, _T = "TaskTemplate.ContainerSpec", "TaskTemplate"
_LIMITS, _RESERVED = "TaskTemplate.Resources.Limits", "TaskTemplate.Resources.Reservations"
_TEXT, _INT, _FLOAT, _CPUS, _BYTES, _TIME, _TRUTH, _WORDS = (
    *("STRING", "INT", "FLOAT", "DECIMAL", "BYTES", "DURATION", "", "COMMAND"),
)
_SCALARS = (
    ("--endpoint-mode", _TEXT, "EndpointSpec.Mode", "Endpoint mode (vip or dnsrr)."),
    ("--entrypoint", _WORDS, f"{_C}.Command", "Overwrite the default ENTRYPOINT of the image."),
    ("--health-interval", _TIME, f"{_C}.Healthcheck.Interval", "Time between running the check (ms|s|m|h)."),
    ("--health-retries", _INT, f"{_C}.Healthcheck.Retries", "Consecutive failures needed to report unhealthy."),
    ("--health-start-interval", _TIME, f"{_C}.Healthcheck.StartInterval", "Time between checks in the start period."),
    ("--health-start-period", _TIME, f"{_C}.Healthcheck.StartPeriod", "Start period before retries count."),
    ("--health-timeout", _TIME, f"{_C}.Healthcheck.Timeout", "Maximum time to allow one check to run."),
    ("--hostname", _TEXT, f"{_C}.Hostname", "Container hostname."),
    ("--init", _TRUTH, f"{_C}.Init", "Use an init inside each container to forward signals and reap processes."),
    ("--isolation", _TEXT, f"{_C}.Isolation", "Service container isolation mode."),
    ("--limit-cpu", _CPUS, f"{_LIMITS}.NanoCPUs", "Limit CPUs."),
    ("--limit-memory", _BYTES, f"{_LIMITS}.MemoryBytes", "Limit memory."),
    ("--limit-pids", _INT, f"{_LIMITS}.Pids", "Limit maximum number of processes (0 = unlimited)."),
    ("--log-driver", _TEXT, f"{_T}.LogDriver.Name", "Logging driver for service."),
    ("--oom-score-adj", _INT, f"{_C}.OomScoreAdj", "Tune host's OOM preferences (-1000 to 1000)."),
    ("--read-only", _TRUTH, f"{_C}.ReadOnly", "Mount the container's root filesystem as read only."),
    ("--replicas-max-per-node", _INT, f"{_T}.Placement.MaxReplicas", "Maximum number of tasks per node (0 = any)."),
    ("--reserve-cpu", _CPUS, f"{_RESERVED}.NanoCPUs", "Reserve CPUs."),
    ("--reserve-memory", _BYTES, f"{_RESERVED}.MemoryBytes", "Reserve memory."),
    ("--restart-condition", _TEXT, f"{_T}.RestartPolicy.Condition", "Restart when this is met: none, on-failure, any."),
    ("--restart-delay", _TIME, f"{_T}.RestartPolicy.Delay", "Delay between restart attempts (ns|us|ms|s|m|h)."),
    ("--restart-max-attempts", _INT, f"{_T}.RestartPolicy.MaxAttempts", "Maximum number of restarts before giving up."),
    ("--restart-window", _TIME, f"{_T}.RestartPolicy.Window", "Window used to evaluate the restart policy."),
    *(
        line
        for word, place in (("rollback", "RollbackConfig"), ("update", "UpdateConfig"))
        for line in (
            (f"--{word}-delay", _TIME, f"{place}.Delay", f"Delay between task {word}s."),
            (f"--{word}-failure-action", _TEXT, f"{place}.FailureAction", f"Action on {word} failure."),
            (f"--{word}-max-failure-ratio", _FLOAT, f"{place}.MaxFailureRatio", "Failure rate to tolerate."),
            (f"--{word}-monitor", _TIME, f"{place}.Monitor", f"Duration after each task {word} to watch for failure."),
            (f"--{word}-order", _TEXT, f"{place}.Order", "Order (start-first, stop-first)."),
            (f"--{word}-parallelism", _INT, f"{place}.Parallelism", "Maximum number of tasks at once (0 for all)."),
        )
    ),
    ("--stop-grace-period", _TIME, f"{_C}.StopGracePeriod", "Time to wait before force killing a container."),
    ("--stop-signal", _TEXT, f"{_C}.StopSignal", "Signal to stop the container."),
    ("--tty", _TRUTH, f"{_C}.TTY", "Allocate a pseudo-TTY."),
    ("--user", _TEXT, f"{_C}.User", "Username or UID (format: <name|uid>[:<group|gid>])."),
    ("--workdir", _TEXT, f"{_C}.Dir", "Working directory inside the container."),
)  # fmt: skip
_LETTERS = {"--tty": "-t", "--user": "-u", "--workdir": "-w", "--env": "-e", "--label": "-l", "--publish": "-p"}


class _List(NamedTuple):
    """A list in the document: its word, its place, how an entry is read, and by what `-rm` finds one."""

    word: str
    place: str
    help: str
    read: Callable[[str], Any] = str
    key: Callable[[Any], Any] = lambda entry: entry
    wanted: Callable[[str], Any] = str


def _fields(text: str, flag: str, known: Sequence[str], bare: str) -> dict[str, str]:
    """`a=1,b=2`; one word alone is the field `bare`."""
    found: dict[str, str] = {}
    for part in next(csv.reader([text]), []):
        name, equals, value = part.partition("=")
        if not equals and not found:
            name, value = bare, part
        if name not in known or not (equals or name == bare):
            raise InvalidParameter(
                f'invalid argument "{text}" for "--{flag}" flag: {part!r}: expected {", ".join(known)}'
            )
        found[name] = value
    return found


def _port(text: str) -> list[Document]:
    """`8080:80/tcp`, ranges of the same length, or `published=8080,target=80,mode=host`."""
    if "=" in text:
        known = ("published", "target", "protocol", "mode")
        given = _fields(text, "publish", known, "target")
        numbers = {name: read_number(given[name], most=0xFFFF) for name in ("published", "target") if name in given}
        if numbers.get("target") is None or None in numbers.values():
            raise _no_port(text)
        found = {"Protocol": given.get("protocol", "tcp"), "PublishMode": given.get("mode", "ingress")}
        return [{**found, **{f"{name.capitalize()}Port": number for name, number in numbers.items()}}]
    rest, _, protocol = text.partition("/")
    outside, colon, inside = rest.rpartition(":")
    targets = _range(inside, text)
    published = _range(outside, text) if colon else [0] * len(targets)
    if len(published) != len(targets):
        raise _no_port(text)
    return [
        {
            "Protocol": protocol or "tcp",
            "TargetPort": target,
            "PublishMode": "ingress",
            **({"PublishedPort": port} if port else {}),
        }
        for port, target in zip(published, targets, strict=True)
    ]


def _range(text: str, whole: str) -> list[int]:
    first, dash, last = text.partition("-")
    begin, end = read_number(first, most=0xFFFF), read_number(last if dash else first, most=0xFFFF)
    if not begin or end is None or end < begin:
        raise _no_port(whole)
    return [*range(begin, end + 1)]


def _no_port(text: str) -> InvalidParameter:
    return InvalidParameter(
        f'invalid argument "{text}" for "--publish" flag: '
        "expected 8080:80, 53:53/udp or published=8080,target=80,mode=host"
    )


def _target(text: str) -> Any:
    port, _, protocol = text.partition("/")
    return read_number(port, most=0xFFFF), protocol or "tcp"


def _network(text: str) -> Document:
    found: Document = {}
    for part in next(csv.reader([text]), []):
        name, equals, value = part.partition("=")
        if not equals:
            found["Target"] = part
        elif name == "name":
            found["Target"] = value
        elif name == "alias":
            found.setdefault("Aliases", []).append(value)
        elif name == "driver-opt":
            option, _, said = value.partition("=")
            found.setdefault("DriverOpts", {})[option] = said
        else:
            raise InvalidParameter(f'invalid argument "{text}" for "--network" flag: expected name, alias, driver-opt')
    if not found.get("Target"):
        raise InvalidParameter(f'invalid argument "{text}" for "--network" flag: it names no network')
    return found


def _preference(text: str) -> Document:
    strategy, equals, by = text.partition("=")
    if strategy != "spread" or not equals:
        raise InvalidParameter(
            f'invalid argument "{text}" for "--placement-pref" flag: expected spread=node.labels.NAME'
        )
    return {"Spread": {"SpreadDescriptor": by}}


def _resource(text: str) -> Document:
    kind, equals, value = text.partition("=")
    if not equals:
        raise InvalidParameter(f'invalid argument "{text}" for "--generic-resource" flag: expected KIND=VALUE')
    number = read_number(value)
    if number is not None:
        return {"DiscreteResourceSpec": {"Kind": kind, "Value": number}}
    return {"NamedResourceSpec": {"Kind": kind, "Value": value}}


def _host(text: str) -> str:
    """`name:address` as a line of a file of hosts."""
    name, _, address = text.partition("=") if "=" in text else text.partition(":")
    if not name or not address:
        raise InvalidParameter(f'invalid argument "{text}" for "--host" flag: expected HOST:IP')
    return f"{address.strip('[]')} {name}"


def _ulimit(text: str) -> Document:
    name, _, limits = text.partition("=")
    soft, _, hard = limits.partition(":")
    try:
        return {"Name": name, "Soft": int(soft), "Hard": int(hard or soft)}
    except ValueError:
        raise InvalidParameter(f'invalid argument "{text}" for "--ulimit" flag: expected NAME=SOFT[:HARD]') from None


def file_of(kind: str) -> Callable[[str], Document]:
    """Read `--secret` and `--config`: a name, or source, target, uid, gid and mode. The id is looked up later."""

    def read(text: str) -> Document:
        given = _fields(text, kind.lower(), ("source", "src", "target", "uid", "gid", "mode"), "source")
        name = given.get("source") or given.get("src") or ""
        mode = given.get("mode", "0444")
        if not name or not all("0" <= digit <= "7" for digit in mode.removeprefix("0o")):
            raise InvalidParameter(
                f'invalid argument "{text}" for "--{kind.lower()}" flag: '
                "expected NAME or source=NAME,target=FILE,mode=0400"
            )
        target = given.get("target") or (name if kind == "Secret" else f"/{name}")
        file = {"Name": target, "UID": given.get("uid", "0"), "GID": given.get("gid", "0")}
        return {f"{kind}Name": name, "File": {**file, "Mode": int(mode.removeprefix("0o"), 8)}}

    return read


def _before(separator: str) -> Callable[[Any], Any]:
    return lambda entry: str(entry).partition(separator)[0]


_LISTS = (
    _List("config", f"{_C}.Configs", "Configurations to expose to the service.", file_of("Config"),
          lambda e: e["ConfigName"]),
    _List("constraint", f"{_T}.Placement.Constraints", "Placement constraint."),
    _List("dns", f"{_C}.DNSConfig.Nameservers", "Custom DNS server."),
    _List("dns-option", f"{_C}.DNSConfig.Options", "DNS option."),
    _List("dns-search", f"{_C}.DNSConfig.Search", "Custom DNS search domain."),
    _List("env", f"{_C}.Env", "Environment variable.", str, _before("=")),
    _List("generic-resource", f"{_RESERVED}.GenericResources", "User defined resource.", _resource,
          lambda e: next(iter(e.values()))["Kind"], _before("=")),
    _List("group", f"{_C}.Groups", "Supplementary user group for the container."),
    _List("host", f"{_C}.Hosts", "Custom host-to-IP mapping (host:ip).", _host, str, _host),
    _List("mount", f"{_C}.Mounts", "Filesystem mount.", lambda text: mount_document(mount_of(text)),
          lambda e: e["Target"]),
    _List("network", f"{_T}.Networks", "Network attachment.", _network, lambda e: e["Target"]),
    _List("placement-pref", f"{_T}.Placement.Preferences", "Placement preference.", _preference, str,
          lambda text: str(_preference(text))),
    _List("publish", "EndpointSpec.Ports", "Port to publish.", _port,
          lambda e: (e.get("TargetPort"), e.get("Protocol", "tcp")), _target),
    _List("secret", f"{_C}.Secrets", "Secrets to expose to the service.", file_of("Secret"), lambda e: e["SecretName"]),
    _List("ulimit", f"{_C}.Ulimits", "Ulimit option.", _ulimit, lambda e: e["Name"], _before("=")),
)  # fmt: skip
# The same for names with a value.
_MAPS = (
    ("container-label", f"{_C}.Labels", "Container label."),
    ("label", "Labels", "Service label."),
    ("sysctl", f"{_C}.Sysctls", "Sysctl option."),
)
_MODES = {
    "replicated": ("Replicated", "Replicas"),
    "replicated-job": ("ReplicatedJob", "TotalCompletions"),
    "global": ("Global", ""),
    "global-job": ("GlobalJob", ""),
}


def create_flags() -> list[click.Parameter]:
    """Make the flags of `create`."""
    return _sorted([*_common(), *_several("", ""), *_named()])


def update_flags() -> list[click.Parameter]:
    """Make the flags of `update`."""
    adding = _several("-add", "Add or update: ")
    taking = [_many(f"--{each}-rm", "Remove: " + help) for each, help in _words()]
    own = [
        click.Option(["--args"], metavar="COMMAND", help="Service command args."),
        click.Option(["--image"], metavar="STRING", default="", help="Service image tag."),
        Flag(["--force"], help="Force update even if no changes require it."),
        Flag(["--rollback"], help="Rollback to previous specification."),
    ]
    return _sorted([*_common(), *adding, *taking, *own])


def _sorted(flags: Sequence[click.Parameter]) -> list[click.Parameter]:
    return sorted(flags, key=lambda each: each.opts[-1])


def _named() -> Iterator[click.Parameter]:
    yield click.Option(["--mode"], metavar="STRING", default="replicated", help=f"Service mode ({', '.join(_MODES)}).")
    yield click.Option(["--name"], metavar="STRING", default="", help="Service name.")
    yield _many("--env-file", "Read in a file of environment variables.")


def _common() -> Iterator[click.Parameter]:
    for flag, kind, _, help in _SCALARS:
        letters = [_LETTERS[flag]] if flag in _LETTERS else []
        if kind == _TRUTH:
            yield Flag([*letters, flag], help=help, default=None)
        else:
            form: Any = {_INT: int, _FLOAT: float}.get(kind)
            yield click.Option([*letters, flag], metavar=kind, type=form, help=help)
    yield click.Option(["--health-cmd"], metavar="STRING", help="Command to run to check health.")
    yield Flag(["--no-healthcheck"], help="Disable any container-specified HEALTHCHECK.")
    yield _many("--log-opt", "Logging driver options.")
    yield click.Option(["--replicas"], type=int, metavar="INT", help="Number of tasks.")
    yield click.Option(["--max-concurrent"], type=int, metavar="INT", help="Number of job tasks to run concurrently.")
    yield _many("--cap-add", "Add Linux capabilities.")
    yield _many("--cap-drop", "Drop Linux capabilities.")
    yield Flag(["-d", "--detach"], help="Exit immediately instead of waiting for the service to converge.")
    yield Flag(["-q", "--quiet"], help="Suppress progress output.")
    yield Flag(["--with-registry-auth"], help="Send registry authentication details to swarm agents.")
    yield Flag(["--no-resolve-image"], help="The image is named as it is: the engine's nodes resolve it.")


def _words() -> Iterator[tuple[str, str]]:
    for each in _LISTS:
        yield each.word, each.help
    for word, _, help in _MAPS:
        yield word, help


def _several(suffix: str, before: str) -> Iterator[click.Parameter]:
    for word, help in _words():
        letter = _LETTERS.get(f"--{word}")
        yield _many(f"--{word}{suffix}", before + help, *([letter] if letter and not suffix else []))


def _many(flag: str, help: str, *letters: str) -> click.Option:
    return click.Option([*letters, flag], multiple=True, metavar="LIST", help=help)


def created(flags: Mapping[str, Any]) -> Document:
    """Return the document of a new service, without image and command."""
    document: Document = {}
    if flags["name"]:
        document["Name"] = flags["name"]
    if flags["mode"] not in _MODES:
        raise InvalidParameter(f"unknown mode: {flags['mode']}, only {', '.join(_MODES)} are supported")
    document["Mode"] = {_MODES[flags["mode"]][0]: {}}
    found = dict(flags)
    found["env"] = environment(flags["env_file"], flags["env"])
    _write(document, found, "")
    return document


def updated(current: Mapping[str, Any], flags: Mapping[str, Any]) -> Document:
    """Return a service's document as the flags change it."""
    document = copy.deepcopy(dict(current))
    for each in _LISTS:
        _take_away(document, each, flags[f"{_python(each.word)}_rm"])
    for word, path, _ in _MAPS:
        kept = _at(document, path)
        for name in flags[f"{_python(word)}_rm"]:
            (kept or {}).pop(name, None)
    _write(document, flags, "_add")
    if flags["image"]:
        _put(document, f"{_C}.Image", flags["image"])
    if flags["args"] is not None:
        _put(document, f"{_C}.Args", _split(flags["args"], "args"))
    if flags["force"]:
        template = document.setdefault("TaskTemplate", {})
        template["ForceUpdate"] = int(template.get("ForceUpdate") or 0) + 1
    return document


def _write(document: Document, flags: Mapping[str, Any], suffix: str) -> None:
    for flag, kind, path, _ in _SCALARS:
        value = flags[_python(flag[2:])]
        if value is not None:
            _put(document, path, _read(kind, flag, value))
    if flags["health_cmd"] is not None:
        _put(document, f"{_C}.Healthcheck.Test", ["CMD-SHELL", flags["health_cmd"]])
    if flags["no_healthcheck"]:
        if flags["health_cmd"] is not None:
            raise InvalidParameter("--no-healthcheck conflicts with --health-* options")
        _put(document, f"{_C}.Healthcheck", {"Test": ["NONE"]})
    if flags["log_opt"]:
        _put(document, f"{_T}.LogDriver.Options", _pairs("log-opt", flags["log_opt"]))
    for each in _LISTS:
        _add(document, each, flags[_python(each.word) + suffix])
    for word, path, _ in _MAPS:
        if given := flags[_python(word) + suffix]:
            _put(document, path, {**(_at(document, path) or {}), **_pairs(word, given)})
    _capabilities(document, flags["cap_add"], flags["cap_drop"])
    _number_of_tasks(document, flags["replicas"], flags["max_concurrent"])


def _read(kind: str, flag: str, value: Any) -> Any:
    if kind == _TIME:
        return nanoseconds(seconds(value, flag))
    if kind == _BYTES:
        return size_of(flag[2:], value)
    if kind == _CPUS:
        return round(cpus_of(value, flag[2:]) * _NANO)
    return _split(value, flag[2:]) if kind == _WORDS else value


def _split(text: str, flag: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidParameter(f'invalid argument "{text}" for "--{flag}" flag: {error}') from None


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    return {name: value for name, _, value in (text.partition("=") for text in given)}


def _add(document: Document, each: _List, given: Sequence[str]) -> None:
    """Put entries into a list; one with the same key is replaced."""
    if not given:
        return
    kept = {str(each.key(entry)): entry for entry in _at(document, each.place) or ()}
    for text in given:
        read = each.read(text)
        for entry in read if isinstance(read, list) else [read]:
            kept[str(each.key(entry))] = entry
    _put(document, each.place, list(kept.values()))


def _take_away(document: Document, each: _List, given: Sequence[str]) -> None:
    kept = _at(document, each.place) or []
    for text in given:
        wanted = str(each.wanted(text))
        kept = [entry for entry in kept if str(each.key(entry)) != wanted]
    if given:
        _put(document, each.place, kept)


def _capabilities(document: Document, added: Sequence[str], dropped: Sequence[str]) -> None:
    """Add and drop; what was dropped before and is added now is dropped no more, and the other way round."""
    for given, here, there in ((added, "Add", "Drop"), (dropped, "Drop", "Add")):
        wanted = [_capability(each) for each in given]
        if not wanted:
            continue
        opposite = [each for each in _at(document, f"{_C}.Capability{there}") or () if each not in wanted]
        if _at(document, f"{_C}.Capability{there}") is not None:
            _put(document, f"{_C}.Capability{there}", opposite)
        before = _at(document, f"{_C}.Capability{here}") or []
        _put(document, f"{_C}.Capability{here}", [*dict.fromkeys([*before, *wanted])])


def _capability(text: str) -> str:
    name = text.upper()
    return name if name == "ALL" or name.startswith("CAP_") else f"CAP_{name}"


def _number_of_tasks(document: Document, replicas: int | None, concurrent: int | None) -> None:
    kinds = {name: count for name, count in _MODES.values()}
    mode = next((each for each in document.get("Mode") or {} if each in kinds), "Replicated")
    settings = (document.setdefault("Mode", {}).get(mode)) or {}
    if replicas is not None:
        if not kinds[mode]:
            raise InvalidParameter("replicas can only be used with replicated or replicated-job mode")
        settings[kinds[mode]] = replicas
    if mode == "ReplicatedJob":
        settings.setdefault("TotalCompletions", 1)
    if mode == "Replicated":
        settings.setdefault("Replicas", 1)
    if concurrent is not None:
        if mode != "ReplicatedJob":
            raise InvalidParameter("max-concurrent can only be used with replicated-job mode")
        settings["MaxConcurrent"] = concurrent
    document["Mode"][mode] = settings


def _python(word: str) -> str:
    return word.replace("-", "_")


def _at(document: Mapping[str, Any], path: str) -> Any:
    for part in path.split("."):
        document = (document or {}).get(part)  # type: ignore[assignment]
    return document


def _put(document: Document, path: str, value: Any) -> None:
    *parts, last = path.split(".")
    for part in parts:
        if document.get(part) is None:
            document[part] = {}
        document = document[part]
    document[last] = value
