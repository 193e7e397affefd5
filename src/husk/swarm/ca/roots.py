"""The roots of the swarm's CA in its record: made, replaced, used. Keys are sealed before they reach a record.

The functions block for some milliseconds: call them from a thread.
"""

import msgspec

from husk.errors import InvalidParameter
from husk.storage.secrets.sealing import Sealer
from husk.swarm import ca
from husk.swarm.ca.tokens import new_token
from husk.swarm.model.settings import CAConfig
from husk.swarm.model.swarm import Swarm, SwarmRoot, Trust

_CONTEXT = "the key of the swarm's CA"
# Of a certificate for etcd, in seconds: it is renewed long before (`member_certificate`).
MEMBER_LIFE = 365 * 24 * 3600.0
_PREFIX = "rpc error: code = InvalidArgument desc = "


def first(config: CAConfig, sealer: Sealer, now: float) -> Trust:
    """Of a new swarm: the root that a client brings, or one of our own."""
    return Trust(root=_kept(_wanted(config, now), sealer))


def with_tokens(swarm: Swarm) -> Swarm:
    """The swarm with new join tokens for the root that it has."""
    root = _trust(swarm).root.certificate.encode()
    return msgspec.structs.replace(swarm, worker_token=new_token(root), manager_token=new_token(root))


def replaced(swarm: Swarm, config: CAConfig, sealer: Sealer, now: float) -> Trust:
    """Begin to replace the root where the settings ask for it: by one that they bring, or by a new one.

    Who asks for the root that there is ends a replacement that is under way; another one begins from that root too.
    """
    trust = _trust(swarm)
    if not config.signing_ca_cert and config.force_rotate == swarm.spec.ca_config.force_rotate:
        return trust
    wanted = _wanted(config, now)
    if wanted.certificate.decode() == trust.root.certificate:
        return Trust(root=trust.root)
    bridge = ca.authority.bridge(wanted, _opened(trust.root, sealer))
    return Trust(root=trust.root, next=_kept(wanted, sealer), bridge=bridge.decode())


def finish(swarm: Swarm) -> Swarm:
    """All nodes have certificates of the next root: it is the root, and tokens name it."""
    if (trust := _trust(swarm)).next is None:
        return swarm
    return with_tokens(msgspec.structs.replace(swarm, trust=Trust(root=trust.next)))


def signer(swarm: Swarm, sealer: Sealer) -> "ca.authority.Signer":
    trust = _trust(swarm)
    return ca.authority.Signer(_opened(trust.signing, sealer), (trust.bridge.encode(),) if trust.bridge else ())


def _wanted(config: CAConfig, now: float) -> "ca.authority.Root":
    if not config.signing_ca_cert:
        return ca.authority.new_root(now)
    try:
        return ca.authority.read_root(config.signing_ca_cert.encode(), config.signing_ca_key.encode(), now)
    except InvalidParameter as error:
        raise InvalidParameter(_PREFIX + error.message) from None


def store_root(sealer: Sealer, now: float) -> SwarmRoot:
    """Of the swarm's own etcd: another than that of nodes, so that a worker's certificate opens nothing there."""
    return _kept(ca.authority.new_root(now, "swarm-store-ca"), sealer)


def member_certificate(
    root: SwarmRoot, sealer: Sealer, request: bytes, node: str, host: str, now: float, serial: int
) -> bytes:
    """By which a manager and its member of etcd are known to the others; `root` is the swarm's `store_root`."""
    return ca.authority.issue_for_host(request, node, host, _opened(root, sealer), MEMBER_LIFE, now, serial)


def _kept(root: "ca.authority.Root", sealer: Sealer) -> SwarmRoot:
    seen = ca.authority.face(root.certificate)
    return SwarmRoot(
        certificate=root.certificate.decode(),
        key=sealer.seal(root.key, _CONTEXT),
        subject=seen.subject,
        public_key=seen.public_key,
        key_id=seen.key_id,
    )


def _opened(root: SwarmRoot, sealer: Sealer) -> "ca.authority.Root":
    return ca.authority.Root(root.certificate.encode(), sealer.unseal(root.key, _CONTEXT))


def _trust(swarm: Swarm) -> Trust:
    assert swarm.trust is not None
    return swarm.trust
