"""Flags of instructions: `--from=x`, `--link`, `--exclude=a --exclude=b`."""

from collections.abc import Mapping

from husk.builder.dockerfile.errors import DockerfileError, suggestion

FLAG, VALUE, LIST = "flag", "value", "list"


class Flags:
    """The flags of one line, read by what its instruction knows."""

    def __init__(self, written: list[str], known: Mapping[str, str]) -> None:
        self._values: dict[str, list[str]] = {}
        for word in written:
            name, value = _read(word, known)
            if name in self._values and known[name] != LIST:
                raise DockerfileError(f"duplicate flag specified: --{name}")
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._values)

    def value(self, name: str) -> str:
        return self._values.get(name, [""])[0]

    def values(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def is_true(self, name: str) -> bool:
        return self.value(name) == "true"

    def maybe_true(self, name: str) -> bool | None:
        """Like `is_true`, and None if nothing was said."""
        return self.is_true(name) if name in self else None


def _read(word: str, known: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = word.removeprefix("--").partition("=")
    if name not in known:
        raise DockerfileError(f"unknown flag: --{name}{suggestion(name, known)}")
    if known[name] == FLAG:
        return name, _boolean(name, value, given=bool(equals))
    if not equals:
        raise DockerfileError(f"missing a value on flag: --{name}")
    return name, value


def _boolean(name: str, value: str, *, given: bool) -> str:
    if given and not value:
        raise DockerfileError(f"missing a value on flag: --{name}")
    value = value.lower() or "true"
    if value not in ("true", "false"):
        raise DockerfileError(f"expecting boolean value for flag --{name}, not: {value}")
    return value
