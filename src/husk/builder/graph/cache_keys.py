"""By which keys the result of an operation is found again.

There are two. The key by definition says: this operation, on these very results. The key by content says: this
operation, on files that look like these. It is dearer, because files have to be read, and it is what makes a hit of a
file that was touched and not changed. An operation has one only if some of its inputs matter by their content alone.
"""

import hashlib

import msgspec

from husk.builder.graph.operations import CacheMount, Exec, Files, Operation, SecretMount, Source, SshMount, StepLimits
from husk.builder.graph.schemes import PROOF
from husk.builder.store.file_actions import NONE, Copy, Selection

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def by_definition(operation: Operation, inputs: list[str]) -> str:
    """`inputs` are the ids of the results that it begins with."""
    return _key("definition", operation, inputs)


def by_content(operation: Operation, inputs: list[str]) -> str:
    """The same with digests of contents in the places of those inputs that have a selection."""
    return _key("content", operation, inputs)


def _key(kind: str, operation: Operation, inputs: list[str]) -> str:
    described = (kind, _what_matters(operation), operation.platform, inputs)
    return "sha256:" + hashlib.sha256(_encoder.encode(described)).hexdigest()


def _what_matters(operation: Operation) -> object:
    """An operation without what changes nothing about its result."""
    body = operation.body
    if isinstance(body, Source) and PROOF in body.attributes:
        return msgspec.structs.replace(body, attributes=_without_proof(body))
    if not isinstance(body, Exec):
        return body
    process = msgspec.structs.replace(body.process, proxy={}, limits=StepLimits())
    mounts = [
        # Secrets, agents and caches come and go: what they are named counts, who owns them does not.
        msgspec.structs.replace(mount, kind=type(mount.kind)(mount.kind.id))
        if isinstance(mount.kind, SecretMount | SshMount | CacheMount)
        else mount
        for mount in body.mounts
    ]
    return msgspec.structs.replace(body, process=process, mounts=mounts)


def _without_proof(source: Source) -> dict[str, str]:
    return {name: value for name, value in source.attributes.items() if name != PROOF}


def selections(operation: Operation) -> dict[int, list[Selection]]:
    """The inputs that matter by their content alone, and which of their files do."""
    match operation.body:
        case Files():
            found = _of_files(operation.body)
        case Exec():
            found = _of_mounts(operation.body)
        case _:
            return {}
    return {number: chosen for number, chosen in found.items() if chosen}


def _of_files(files: Files) -> dict[int, list[Selection]]:
    chosen: dict[int, list[Selection]] = {}
    whole: set[int] = set()
    for action in files.actions:
        # What is worked on is kept whole.
        whole.add(action.input)
        if not isinstance(action.action, Copy):
            continue
        copy = action.action
        selection = Selection(
            path=copy.source,
            wildcards=copy.wildcards,
            follow_links=copy.follow_links,
            include=copy.include,
            exclude=copy.exclude,
            required=copy.required,
        )
        chosen.setdefault(action.second_input, []).append(selection)
        for owner in (copy.user, copy.group):
            if owner and owner.name:
                whole.add(owner.input)
    return {number: found for number, found in chosen.items() if number != NONE and number not in whole}


def _of_mounts(body: Exec) -> dict[int, list[Selection]]:
    chosen: dict[int, list[Selection]] = {}
    whole: set[int] = set()
    for mount in body.mounts:
        if mount.input == NONE:
            continue
        if mount.read_only and mount.output == NONE and mount.target != "/":
            chosen.setdefault(mount.input, []).append(Selection(path=mount.selector or "/", follow_links=True))
        else:
            whole.add(mount.input)
    return {number: found for number, found in chosen.items() if number not in whole}
