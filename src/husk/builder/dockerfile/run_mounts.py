"""`RUN --mount=...`: what it says, and which of its options go together.

The options are read twice: once when the file is parsed, for what cannot wait (a name in `from` decides which stages
are needed), and once with the variables of the moment when the instruction is carried out.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from husk.builder.dockerfile.comma_fields import BadFields, comma_fields
from husk.builder.dockerfile.errors import DockerfileError, suggestion
from husk.builder.graph.operations import Sharing

Word = TypeVar("Word", bound=str)

TYPES = ("bind", "cache", "tmpfs", "secret", "ssh")
SHARING: tuple[Sharing, ...] = ("shared", "private", "locked")
WITH_OWNER = ("secret", "ssh", "cache")
ALIASES = {
    "src": "source",
    "dst": "target",
    "destination": "target",
    "ro": "readonly",
    "rw": "readwrite",
}
KEYS = (
    *(
        "type",
        "from",
        "source",
        "target",
        "readonly",
        "readwrite",
        "id",
        "sharing",
        "required",
        "size",
        "mode",
        "uid",
        "gid",
        "env",
    ),
    *ALIASES,
)
TRUE, FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


class RunMount(Struct, frozen=True):
    """One mount as it was written: `text` is read again when variables are known."""

    text: str
    source: str = ""  # from=


class MountFlag(Struct, kw_only=True):
    type: str = "bind"
    origin: str = ""  # from=
    source: str = ""
    target: str = ""
    read_only: bool = True
    id: str = ""
    sharing: Sharing | None = None
    required: bool = False
    size: int = 0
    env: str | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


def parse(text: str) -> RunMount:
    origin = ""
    for field in _fields(text):
        key, equals, value = field.partition("=")
        if key.lower() != "from" or not equals:
            continue
        if "$" in value[:-1]:
            raise DockerfileError("'from' doesn't support variable expansion, define alias stage instead")
        origin = value
    return RunMount(text, origin)


def resolve(mount: RunMount, expand: Callable[[str], str]) -> MountFlag:
    """The mount with its variables expanded, and checked."""
    found = MountFlag()
    said_access = False
    for field in _fields(mount.text):
        written, equals, value = field.partition("=")
        key = ALIASES.get(written.lower(), written.lower())
        if equals:
            _set(found, key, expand(value), field)
        else:
            _set_bare(found, key, field)
        said_access = said_access or key in ("readonly", "readwrite")
    if not said_access:
        found.read_only = found.type not in ("cache", "tmpfs")
    _check(found)
    return found


def _fields(text: str) -> list[str]:
    try:
        return comma_fields(text)
    except BadFields as error:
        raise DockerfileError(f"failed to parse csv mounts: {error}") from None


def _set_bare(mount: MountFlag, key: str, field: str) -> None:
    if key == "readonly":
        mount.read_only = True
    elif key == "readwrite":
        mount.read_only = False
    elif key == "required":
        _only_for(mount, key, "secret", "ssh")
        mount.required = True
    else:
        raise DockerfileError(f"invalid field '{field}' must be a key=value pair")


def _set(mount: MountFlag, key: str, value: str, field: str) -> None:
    match key:
        case "type":
            mount.type = _one_of(value, TYPES, f'unsupported mount type "{value}"')
        case "from":
            mount.origin = value
        case "source" | "target" | "id":
            setattr(mount, key, value)
        case "env":
            mount.env = value
        case "readonly":
            mount.read_only = _boolean(key, value)
        case "readwrite":
            mount.read_only = not _boolean(key, value)
        case "required":
            _only_for(mount, key, "secret", "ssh")
            mount.required = _boolean(key, value)
        case "size":
            _only_for(mount, key, "tmpfs")
            mount.size = _bytes(value)
        case "sharing":
            mount.sharing = _one_of(value, SHARING, f'unsupported sharing value "{value}"')
        case "mode" | "uid" | "gid":
            setattr(mount, key, _number(key, value, base=8 if key == "mode" else 10))
        case _:
            raise DockerfileError(f"unexpected key '{key}' in '{field}'{suggestion(key, KEYS)}")


def _check(mount: MountFlag) -> None:
    for key in ("mode", "uid", "gid"):
        if getattr(mount, key) is not None and mount.type not in WITH_OWNER:
            raise DockerfileError(f'{key} not allowed for "{mount.type}" type mounts')
    if mount.type == "secret":
        if mount.origin:
            raise DockerfileError("secret mount should not have a from")
        if mount.sharing:
            raise DockerfileError("secret mount should not define sharing")
        if not (mount.source or mount.target or mount.id):
            raise DockerfileError("invalid secret mount. one of source, target required")
        if mount.source and mount.id:
            raise DockerfileError("both source and id can't be set")
    if mount.sharing and mount.type != "cache":
        raise DockerfileError(f"invalid cache sharing set for {mount.type} mount")


def _only_for(mount: MountFlag, key: str, *types: str) -> None:
    if mount.type not in types:
        raise DockerfileError(f"unexpected key '{key}' for mount type '{mount.type}'")


def _one_of(value: str, known: tuple[Word, ...], message: str) -> Word:
    for word in known:
        if word == value.lower():
            return word
    raise DockerfileError(message + suggestion(value, known))


def _boolean(key: str, value: str) -> bool:
    if value not in (*TRUE, *FALSE):
        raise DockerfileError(f"invalid value for {key}: {value}")
    return value in TRUE


def _number(key: str, value: str, *, base: int) -> int:
    if value.isascii() and value.isdigit():
        try:
            number = int(value, base)
        except ValueError:
            number = -1
        if 0 <= number < 1 << 32:
            return number
    raise DockerfileError(f"invalid value {value} for {key}")


def _bytes(value: str) -> int:
    """`64m`, `1.5GiB`, `4096`."""
    text = value.strip().lower().removesuffix("b").removesuffix("i")
    unit = text[-1:] if text[-1:].isalpha() else ""
    number = text.removesuffix(unit).strip()
    plain = number.replace(".", "", 1)
    if unit not in UNITS or not plain.isdigit() or not plain.isascii() or len(plain) > 18:
        raise DockerfileError(f"invalid value for size: {value}")
    return int(float(number) * (1 << UNITS[unit]))
