"""Git repositories as contexts and as sources of ADD: `https://host/repo.git#ref:directory`, `git@host:repo.git`.

A query may say the same with names: `https://host/repo.git?branch=main&subdir=x`. `source_of` makes a source of one, in
BuildKit's words; `read` is the way back.
"""

import posixpath
import re
from urllib.parse import parse_qsl, unquote, urlunsplit

from msgspec import Struct

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.graph import schemes
from husk.builder.graph.operations import Source
from husk.text.urls import split_url

SCHEMES = ("http", "https", "ssh", "git")
HEADER_SECRET, TOKEN_SECRET = "GIT_AUTH_HEADER", "GIT_AUTH_TOKEN"
_SCP = re.compile(
    r"(?P<user>[a-zA-Z0-9_-]+)@(?P<host>[a-zA-Z0-9.-]+):(?P<path>(?!//)[^#?]+)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?"
)
_MAY_BE_EMPTY = ("keep-git-dir", "submodules", "fetch-by-commit")
_QUERIES = ("ref", "branch", "tag", "commit", "checksum", "subdir", "mtime", *_MAY_BE_EMPTY)
_TIMES = ("checkout", "commit")
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


class GitRef(Struct, frozen=True, kw_only=True):
    remote: str
    ref: str = ""
    directory: str = ""
    checksum: str = ""  # of the commit, or the beginning of it
    keep_git_dir: bool | None = None
    submodules: bool = True
    mtime: str = ""  # of files: that of the checkout, or of the commit
    fetch_by_commit: bool = False  # what the checksum says, whatever the ref is
    like_a_path: bool = False  # github.com/x/y: a context only


def parse(text: str) -> GitRef | None:
    """The repository that a text names; None if it names none, but a path or another address."""
    if scp := _SCP.fullmatch(text):
        remote = f"{scp['user']}@{scp['host']}:{scp['path']}"
        return _with_details(remote, scp["query"] or "", scp["fragment"] or "")
    like_a_path = text.startswith("github.com/")
    try:
        parts = split_url("https://" + text if like_a_path else text)
    except ValueError:
        return None
    if parts.scheme not in SCHEMES or not parts.netloc:
        return None
    if not (parts.path.endswith(".git") or parts.scheme in ("git", "ssh") or like_a_path):
        return None
    remote = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    return _with_details(remote, parts.query, unquote(parts.fragment), like_a_path=like_a_path)


def _with_details(remote: str, query: str, fragment: str, *, like_a_path: bool = False) -> GitRef:
    ref, _, directory = fragment.partition(":")
    said = {"ref": ref, "subdir": _within(directory)}
    queries = _queries(query)
    for name, value in queries.items():
        key = {"branch": "ref", "tag": "ref", "commit": "checksum"}.get(name, name)
        prefix = {"branch": "refs/heads/", "tag": "refs/tags/"}.get(name, "")
        value = value if value.startswith(prefix) else prefix + value
        if name != key and name in ("branch", "tag") and "branch" in queries and "tag" in queries:
            raise DockerfileError("branch conflicts with tag")
        if said.get(key) and said[key] != value:
            raise DockerfileError(f'{key} conflicts: "{said[key]}" vs "{value}"')
        said[key] = value
    if (mtime := said.get("mtime", "")) and mtime not in _TIMES:
        raise DockerfileError(f'invalid mtime value: "{mtime}" (must be "checkout" or "commit")')
    return GitRef(
        remote=remote,
        ref=said["ref"],
        directory=said["subdir"],
        checksum=said.get("checksum", ""),
        keep_git_dir=_flag(said, "keep-git-dir"),
        submodules=_flag(said, "submodules") is not False,
        mtime=mtime,
        fetch_by_commit=bool(_flag(said, "fetch-by-commit")),
        like_a_path=like_a_path,
    )


def _queries(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in found:
            raise DockerfileError(f'query "{name}" has multiple values')
        if name not in _QUERIES:
            raise DockerfileError(f'unexpected query "{name}"')
        if not value and name not in _MAY_BE_EMPTY:
            raise DockerfileError(f'query "{name}" has no value')
        found[name] = value
    return found


def _flag(said: dict[str, str], name: str) -> bool | None:
    if name not in said:
        return None
    value = said[name]
    if value and value not in _TRUE + _FALSE:
        raise DockerfileError(f'invalid {name} value: "{value}"')
    return value not in _FALSE


def _within(directory: str) -> str:
    """A directory of the repository, however it is written: none leads out of it."""
    return posixpath.normpath("/" + directory).lstrip("/") if directory else ""


# --- as a source -----------------------------------------------------------------------------------------------------


def source_of(repository: GitRef) -> Source:
    """Return the source of a repository; by another protocol the same repository has the same identifier."""
    fragment = repository.ref + (f":{repository.directory}" if repository.directory else "")
    attributes = {
        "git.fullurl": repository.remote,
        "git.authheadersecret": HEADER_SECRET,
        "git.authtokensecret": TOKEN_SECRET,
        "git.mountsshsock": "default" if is_ssh(repository.remote) else "",
        "git.checksum": repository.checksum,
        "git.keepgitdir": "true" if repository.keep_git_dir else "",
        "git.skipsubmodules": "" if repository.submodules else "true",
        "git.mtime": repository.mtime,
        "git.fetchbycommit": "true" if repository.fetch_by_commit else "",
    }
    identifier = f"{schemes.GIT}://{_place(repository.remote)}" + (f"#{fragment}" if fragment else "")
    return Source(identifier, {name: value for name, value in attributes.items() if value})


def read(source: Source) -> GitRef:
    """The repository that a source means, also one that was made by somebody else."""
    place, _, fragment = source.identifier.removeprefix(f"{schemes.GIT}://").partition("#")
    ref, _, directory = fragment.partition(":")
    attributes = source.attributes
    remote = attributes.get("git.fullurl") or place
    if "://" not in remote and not _SCP.fullmatch(remote):
        remote = f"https://{remote}"
    return GitRef(
        remote=remote,
        ref=ref,
        directory=_within(directory),
        checksum=attributes.get("git.checksum", ""),
        keep_git_dir=attributes.get("git.keepgitdir") == "true",
        submodules=attributes.get("git.skipsubmodules") != "true",
        mtime=attributes.get("git.mtime", ""),
        fetch_by_commit=attributes.get("git.fetchbycommit") == "true",
    )


def is_ssh(remote: str) -> bool:
    return remote.startswith("ssh://") or "://" not in remote


def host_of(remote: str) -> str:
    return _place(remote).partition("/")[0]


def _place(remote: str) -> str:
    """Host and path, without who we are there."""
    if scp := _SCP.fullmatch(remote):
        return f"{scp['host']}{posixpath.normpath('/' + scp['path'])}"
    parts = split_url(remote)
    return f"{parts.netloc.rpartition('@')[2]}{posixpath.normpath('/' + parts.path.lstrip('/'))}"
