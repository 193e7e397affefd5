"""Additions to each line of a log that `labels`, `env` and `tag` ask for. Pure."""

from collections.abc import Mapping
from urllib.parse import quote_plus

from husk.engine.model.container import Container
from husk.errors import InvalidParameter
from husk.text import re2
from husk.text.patterns import pattern

OPTIONS = frozenset({"labels", "labels-regex", "env", "env-regex", "tag"})

# What dockerd calls itself in a tag; receivers match on it.
DAEMON_NAME = "docker"
DEFAULT_TAG = "{{.ID}}"
_ACTION = pattern(r"{{([^{}]*+)}}")
_FIELDS = ("ID", "FullID", "Name", "FullName", "ImageID", "ImageFullID", "ImageName", "DaemonName")


def check(options: Mapping[str, str]) -> None:
    for name in ("labels-regex", "env-regex"):
        if name not in options:
            continue
        try:
            re2.parse(options[name])
        except re2.BadExpression as error:
            raise InvalidParameter(f"error parsing regexp: {error}") from None
    if not (template := options.get("tag", "")):
        return
    for action in map(_field, _ACTION.findall(template)):
        if action.removeprefix(".") not in _FIELDS or not action.startswith("."):
            raise InvalidParameter(f"template: log-tag: {{{{{action}}}}} is not one of {_choices()}")
    if "{{" in _ACTION.sub("", template):
        raise InvalidParameter("template: log-tag:1: unclosed action")


def tag(container: Container, template: str) -> str:
    """The tag of a container's lines."""
    image_id = container.image_id.removeprefix("sha256:")
    values = {
        "ID": container.id[:12],
        "FullID": container.id,
        "Name": container.name,
        "FullName": "/" + container.name,
        "ImageID": image_id[:12],
        "ImageFullID": container.image_id,
        "ImageName": container.config.image,
        "DaemonName": DAEMON_NAME,
    }
    return _ACTION.sub(lambda match: values.get(_field(match[1]).removeprefix("."), ""), template)


def _field(action: str) -> str:
    """The field that an action names, without blanks: an expression could share these out in many ways."""
    return action.removeprefix("-").removesuffix("-").strip()


def extra(container: Container) -> dict[str, str]:
    """Labels and variables of the container that go along with each line."""
    options = container.host_config.log_config.config
    labels = container.config.labels
    variables = dict(entry.partition("=")[::2] for entry in container.config.env)
    found: dict[str, str] = {}
    for source, names, chosen in (
        (labels, options.get("labels", ""), options.get("labels-regex", "")),
        (variables, options.get("env", ""), options.get("env-regex", "")),
    ):
        found |= {name: source[name] for name in names.split(",") if name in source}
        if chosen:
            found |= _chosen(source, chosen)
    return found


def _chosen(source: Mapping[str, str], expression: str) -> dict[str, str]:
    """Those whose names an expression is found in; none where that is too much work."""
    names = re2.Finder([expression])
    try:
        return {name: value for name, value in source.items() if names.finds(name)}
    except re2.TooMuch:
        return {}


def details(container: Container) -> str:
    """Return the words that `docker logs --details` shows in front of each line."""
    shown = {}
    if container.host_config.log_config.type == "json-file":
        shown = extra(container)
        if template := container.host_config.log_config.config.get("tag", ""):
            shown["tag"] = tag(container, template)
    pairs = sorted(f"{quote_plus(name)}={quote_plus(value)}" for name, value in shown.items())
    return ",".join(pairs)


def _choices() -> str:
    return ", ".join(f"{{{{.{name}}}}}" for name in _FIELDS)
