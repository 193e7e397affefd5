"""The chain id of a layer: a name made of the layer itself and all that it stands on."""

import hashlib


def chain_id(parent: str, diff_id: str) -> str:
    """The name of a layer on top of `parent` (a chain id, or "" for the first layer)."""
    if not parent:
        return diff_id
    return "sha256:" + hashlib.sha256(f"{parent} {diff_id}".encode()).hexdigest()
