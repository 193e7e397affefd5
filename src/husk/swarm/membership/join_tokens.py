"""Join tokens in the record of a swarm: with autolock they are sealed there, for who joins as a manager is given all.

The methods of a sealer block where its key is not in memory yet: call these from a thread, or when something was
unsealed before.
"""

import base64

import msgspec

from husk.storage.secrets.sealing import Sealer
from husk.swarm.model.swarm import Swarm

_CONTEXT = "a join token of the swarm"
_SEALED = "sealed:"


def fitting(swarm: Swarm, sealer: Sealer) -> Swarm:
    """The swarm with its tokens as they are to be in its record."""
    worker, manager = (_kept(text, swarm.autolock, sealer) for text in (swarm.worker_token, swarm.manager_token))
    return msgspec.structs.replace(swarm, worker_token=worker, manager_token=manager)


def shown(swarm: Swarm, sealer: Sealer) -> Swarm:
    """The swarm with its tokens as people type them."""
    worker, manager = (_opened(text, sealer) for text in (swarm.worker_token, swarm.manager_token))
    return msgspec.structs.replace(swarm, worker_token=worker, manager_token=manager)


def fit(swarm: Swarm) -> bool:
    """Tell if a swarm's tokens are sealed just where it has autolock. Records of former releases have them as typed."""
    tokens = filter(None, (swarm.worker_token, swarm.manager_token))
    return all(token.startswith(_SEALED) == swarm.autolock for token in tokens)


def _kept(text: str, sealed: bool, sealer: Sealer) -> str:
    if not text or text.startswith(_SEALED) == sealed:
        return text
    if not sealed:
        return _opened(text, sealer)
    return _SEALED + base64.b64encode(sealer.seal(text.encode(), _CONTEXT)).decode()


def _opened(text: str, sealer: Sealer) -> str:
    if not text.startswith(_SEALED):
        return text
    return sealer.unseal(base64.b64decode(text.removeprefix(_SEALED)), _CONTEXT).decode()
