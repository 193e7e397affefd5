"""Git repositories as contexts and as sources of ADD: `https://host/repo.git#ref:directory`, `git@host:repo.git`.

A query may say the same with names: `https://host/repo.git?branch=main&subdir=x`.
"""

import re
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from msgspec import Struct

from husk.engine.builder.dockerfile.errors import DockerfileError

SCHEMES = ("http", "https", "ssh", "git")
QUERIES = ("ref", "branch", "tag", "commit", "checksum", "subdir", "keep-git-dir", "submodules")
_SCP = re.compile(
    r"(?P<user>[a-zA-Z0-9._-]+)@(?P<host>[a-zA-Z0-9.-]+):(?P<path>(?!//)[^#?]+)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?"
)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_WITHOUT_SCHEME = ("github.com/", "git@")


class GitRef(Struct, frozen=True, kw_only=True):
    remote: str
    ref: str = ""
    directory: str = ""
    checksum: str = ""
    keep_git_dir: bool | None = None
    submodules: bool = True


def parse(text: str) -> GitRef | None:
    """The repository that a text names; None if it names none, but a path or another address."""
    if scp := _SCP.fullmatch(text):
        remote = f"{scp['user']}@{scp['host']}:{scp['path']}"
        return _with_details(remote, scp["query"] or "", scp["fragment"] or "")
    address = "https://" + text if text.startswith("github.com/") else text
    parts = urlsplit(address)
    if parts.scheme not in SCHEMES or not parts.netloc:
        return None
    is_repository = parts.path.endswith(".git") or parts.scheme in ("git", "ssh") or text.startswith("github.com/")
    if not is_repository:
        return None
    remote = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    return _with_details(remote, parts.query, parts.fragment)


def _with_details(remote: str, query: str, fragment: str) -> GitRef:
    ref, _, directory = fragment.partition(":")
    said = {"ref": unquote(ref), "subdir": directory}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in QUERIES:
            raise DockerfileError(f'unexpected query "{name}" in the git address {remote}')
        key = {"branch": "ref", "tag": "ref", "commit": "checksum"}.get(name, name)
        if said.get(key) and said[key] != value:
            raise DockerfileError(f"{remote}: {name} says something else than what was said before")
        prefix = {"branch": "refs/heads/", "tag": "refs/tags/"}.get(name, "")
        said[key] = prefix + value
    if said.get("checksum") and not _COMMIT.fullmatch(said["checksum"]):
        raise DockerfileError(f'{remote}: "{said["checksum"]}" is not a commit')
    return GitRef(
        remote=remote,
        ref=said["ref"],
        directory=said["subdir"],
        checksum=said.get("checksum", ""),
        keep_git_dir=_maybe(said.get("keep-git-dir")),
        submodules=_maybe(said.get("submodules")) is not False,
    )


def _maybe(text: str | None) -> bool | None:
    return None if text is None else text.lower() not in ("0", "f", "false")
