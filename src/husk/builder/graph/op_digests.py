"""The keys of operations as BuildKit computes them: digests of what matters of them, written as Go writes JSON. Pure.

An operation has a digest, and each of its inputs a selector (which of its files matter, as a digest) and perhaps a
selection of files whose content may stand for the input. The order of fields, and what is left out when it is empty, is
that of BuildKit's own structures: a byte that differs is another key.
"""

import base64
import hashlib
import json
import posixpath
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from husk.builder.graph import llb_write, ops
from husk.builder.graph.llb_json import Json, document, filled
from husk.builder.graph.operations import (
    BindMount,
    CacheMount,
    Diff,
    Exec,
    ExecMount,
    Files,
    Merge,
    Operation,
    SecretMount,
    SshMount,
    TmpfsMount,
)
from husk.builder.store.file_actions import NONE, Copy, FileAction, MakeDirectory, MakeFile, Selection
from husk.registry.manifest import host_platform
from husk.text.globs import has_wildcards

# What the digest of an input's files is an output of.
CONTENT = -1


class InputKey(Struct, frozen=True):
    """The parts of an input that count: `selector` for its own key, `files` for its content (None: never)."""

    selector: str = ""
    files: list[Selection] | None = None


class OpKey(Struct, frozen=True):
    digest: str
    inputs: list[InputKey] = []


def record_digest(digest: str, output: int) -> str:
    """The name of one output of something with this digest."""
    return digest_of(f"{digest}@{output}".encode())


def source_digest(key: str) -> str:
    """Of a source that is now what `key` says."""
    return digest_of(f"buildkit.source.v0:{key}".encode())


def op_key(operation: Operation) -> OpKey | None:
    """None for what has no key of this kind: sources have their own, builds within builds none."""
    match operation.body:
        case Exec() as body:
            return _exec(body, operation)
        case Files() as body:
            return _files(body, len(operation.inputs))
        case Merge() | Diff() as body:
            kind = type(body).__name__
            written = _within(document(llb_write.operation(operation)), "Op")
            key = _json_digest({"Type": f"buildkit.{kind.lower()}.v0", kind: written[kind.lower()]})
            return OpKey(key, [InputKey()] * len(operation.inputs))
        case _:
            return None


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


# --- processes -------------------------------------------------------------------------------------------------------


def _exec(body: Exec, operation: Operation) -> OpKey:
    platform = operation.platform or host_platform()
    written = llb_write.execution(body)
    meta = written.meta
    assert meta is not None
    written.meta = replace(meta, proxy_env=None, extra_hosts=[ops.HostIP(one.host) for one in meta.extra_hosts])
    written.mounts = [] if _is_plain_root(body.mounts) else [_mount(one) for one in body.mounts]
    told = {
        "Type": "buildkit.exec.v0",
        "Exec": document(written),
        "OS": platform.os,
        "Arch": platform.architecture,
        **filled(
            {
                "Variant": platform.variant,
                "OSVersion": platform.os_version,
                "OSFeatures": list(platform.os_features),
            }
        ),
    }
    mounts_of: dict[int, list[ExecMount]] = {}
    for one in body.mounts:
        if not isinstance(one.kind, SecretMount | SshMount | TmpfsMount):
            mounts_of.setdefault(one.input, []).append(one)
    return OpKey(_json_digest(told), [_mounted(mounts_of.get(n, [])) for n in range(len(operation.inputs))])


def _is_plain_root(mounts: list[ExecMount]) -> bool:
    """A process with nothing but its root: BuildKit once forgot mounts in its keys, and kept that for this case."""
    return len(mounts) == 1 and mounts[0].target == "/" and not mounts[0].read_only and mounts[0].kind == BindMount()


def _mount(mount: ExecMount) -> ops.Mount:
    """Write a mount without what may change: its selector, and any name of a cache but the usual one."""
    written = replace(llb_write.mount(mount), selector="")
    if isinstance(mount.kind, CacheMount) and not _is_usual(mount.kind, mount.target):
        written.cache_opt = ops.CacheOpt()
    return written


def _is_usual(cache: CacheMount, target: str) -> bool:
    """Return True for the name that a Dockerfile gives a cache by itself."""
    return cache.sharing == "shared" and (cache.id == target or cache.id.partition("/")[2] == target)


def _mounted(mounts: Iterable[ExecMount]) -> InputKey:
    """Of an input, by what is mounted of it."""
    paths: list[str] = []
    by_content = False
    for mount in mounts:
        path = _absolute(mount.selector)
        paths.append(path)
        # The last mount of an input decides, as with BuildKit.
        by_content = (mount.output == NONE or mount.read_only or path == "/") and mount.target != "/"
    selector = digest_of("\0".join(paths).encode()) if paths else ""
    if not by_content:
        return InputKey(selector)
    chosen = _outermost(paths)
    if "/" in chosen:
        return InputKey(selector, [Selection(path="/")])
    return InputKey(selector, [Selection(path=path, follow_links=True) for path in chosen])


# --- files -----------------------------------------------------------------------------------------------------------


def _files(body: Files, count: int) -> OpKey:
    chosen: dict[int, list[Selection]] = {}
    actions = [_action(step, count, chosen) for step in body.actions]
    told: Json = {"Type": "buildkit.file.v0", "Actions": actions}
    places = [[step.input, step.second_input, step.output] for step in body.actions]
    if places and not _are_usual(places):
        told["indexes"] = places
    whole = {step.input for step in body.actions}
    inputs = [
        _chosen(chosen[number]) if number in chosen and number not in whole else InputKey() for number in range(count)
    ]
    return OpKey(_json_digest(told), inputs)


def _chosen(selections: list[Selection]) -> InputKey:
    paths = sorted((selection.path.encode() for selection in selections), reverse=True)
    return InputKey(digest_of(b"\0".join(paths)), _without_doubles(selections))


def _without_doubles(selections: list[Selection]) -> list[Selection]:
    """Drop the plain paths that lie below another one, which counts for them, too; sort the rest by path."""
    plain = [one for one in selections if not (one.wildcards or one.include or one.exclude)]
    found = [
        Selection(path=path, follow_links=follow)
        for follow in (False, True)
        for path in _outermost([one.path for one in plain if one.follow_links == follow])
    ]
    found += [one for one in selections if one.wildcards or one.include or one.exclude]
    return sorted(found, key=lambda one: one.path.encode())


def _are_usual(places: list[list[int]]) -> bool:
    """Each action works on what the one before it made, and the last one makes the output: then it goes unsaid."""
    last = len(places) - 1
    return all(
        first == (0 if number == 0 else len(places) + number - 1)
        and second in (NONE, 1)
        and output == (0 if number == last else NONE)
        for number, (first, second, output) in enumerate(places)
    )


def _action(step: FileAction, count: int, chosen: dict[int, list[Selection]]) -> str:
    """One action as it is written, in base64; the files that it takes go to `chosen`."""
    action = step.action
    if isinstance(action, Copy | MakeFile | MakeDirectory):
        for one, path in ((action.user, "/etc/passwd"), (action.group, "/etc/group")):
            if one and one.name:
                chosen.setdefault(one.input, []).append(Selection(path=path, follow_links=True))
    if isinstance(action, Copy) and 0 <= step.second_input < count:
        chosen.setdefault(step.second_input, []).append(_selection(action))
        step = replace(step, action=replace(action, source=_base(action.source)))
    (written,) = _within(document(llb_write.file_action(step)), "Action").values()
    return base64.b64encode(_json(written)).decode()


def _selection(copy: Copy) -> Selection:
    return Selection(
        path=copy.source,
        wildcards=copy.wildcards and has_wildcards(copy.source),
        follow_links=copy.follow_links,
        include=copy.include,
        exclude=copy.exclude,
        required=copy.required,
    )


# --- paths -----------------------------------------------------------------------------------------------------------


def _absolute(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _base(path: str) -> str:
    """The last name of a path, as Go tells it."""
    return posixpath.basename(path.rstrip("/")) or ("/" if path else ".")


def _outermost(paths: Iterable[str]) -> list[str]:
    # As directories they come right before what is below them, and the shortest of several names first.
    found: list[str] = []
    last = ""
    for directory, path in sorted((path.rstrip("/") + "/", path) for path in set(paths)):
        if not last or not directory.startswith(last):
            found.append(path)
            last = directory
    return sorted(found, key=str.encode)


# --- Go's JSON -------------------------------------------------------------------------------------------------------


def _json(document: object) -> bytes:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace")


def _within(told: Json, name: str) -> Json:
    inner = told[name]
    assert isinstance(inner, dict)
    return inner


def _json_digest(document: object) -> str:
    return digest_of(_json(document))
