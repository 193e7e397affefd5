"""Failures of starts in plain words, out of the chain of messages that runtimes tell of them. Pure."""

import re
from collections.abc import Iterable

from husk.cli.kit.group import near

_NOT_FOUND = re.compile(r'exec: "(?P<name>[^"]+)": (?:executable file not found|stat \S+: no such file or directory)')
_DENIED = re.compile(r'exec: "(?P<name>[^"]+)": (?P<why>permission denied|is a directory)')
_DIRECTORY = re.compile(r'chdir to cwd \("(?P<name>[^"]+)"\) set in config\.json failed: (?P<why>[^:]+)')
# What stands before the runtime's own sentence.
_CHAIN = re.compile(
    r"^(?:failed to create task for container: )?(?:failed to create shim task: )?OCI runtime \w+ failed: "
    r"(?:\w+ (?:\w+ )?failed: )?(?:unable to start container process: )?(?P<rest>.*?)(?:: unknown)?$",
    re.DOTALL,
)


def plainly(message: str, image: str = "", known: Iterable[str] = ()) -> str:
    """Say what a start has failed of; `known` are programs of the image. Other messages stay as they are."""
    if (chain := _CHAIN.match(message)) is None:
        return message
    place = f"the image {image}" if image else "its image"
    if found := _NOT_FOUND.search(message):
        return f'"{found["name"]}" is not in {place}{near(found["name"], known)}'
    if found := _DENIED.search(message):
        return f'"{found["name"]}" cannot be executed: {found["why"]} (it is not executable, or a directory)'
    if found := _DIRECTORY.search(message):
        return f'the working directory "{found["name"]}" cannot be entered: {found["why"]}'
    return chain["rest"]
