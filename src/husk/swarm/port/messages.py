"""Messages about trust on the cluster port. Messages of other handlers are with those."""

from typing import Annotated

from husk.rpc.protobuf import Message

ROOT = "/husk.cluster.v1.Trust/Root"
JOIN = "/husk.cluster.v1.Trust/Join"
RENEW = "/husk.cluster.v1.Trust/Renew"
FOLLOW = "/husk.cluster.v1.Trust/Follow"
ENTER = "/husk.cluster.v1.Managers/Enter"


class RootRequest(Message):
    pass


class RootReply(Message):
    """The root certificate whose digest join tokens carry, in PEM."""

    certificate: Annotated[bytes, 1] = b""
    # The manager's version of the cluster protocol (`protocol.py`), and its release.
    protocol: Annotated[int, 2] = 0
    release: Annotated[str, 3] = ""


class JoinRequest(Message):
    token: Annotated[str, 1] = ""
    # For a certificate (PKCS #10, DER); only its key counts.
    request: Annotated[bytes, 2] = b""
    availability: Annotated[str, 3] = ""
    hostname: Annotated[str, 4] = ""
    # By which others reach the node; where it calls from, if it is empty.
    address: Annotated[str, 5] = ""
    data_path_address: Annotated[str, 6] = ""
    # What the node is, in the engine's words.
    description: Annotated[bytes, 7] = b""
    # Of a manager's cluster port; 0 for the usual one.
    port: Annotated[int, 8] = 0
    # The node's version of the cluster protocol, and its release.
    protocol: Annotated[int, 9] = 0
    release: Annotated[str, 10] = ""


class RenewRequest(Message):
    request: Annotated[bytes, 1] = b""


class CertificateReply(Message):
    # The node's, with those that it needs to be believed, in PEM.
    certificate: Annotated[bytes, 1] = b""
    # The roots to believe in from now on, in PEM.
    roots: Annotated[bytes, 2] = b""
    # Whom the node may call, HOST:PORT.
    managers: Annotated[list[str], 3] = []


class FollowRequest(Message):
    """Answered when what the node has is not what it should have, or after a while."""

    # Of the roots that the node believes in, SHA-256.
    roots: Annotated[bytes, 1] = b""


class FollowReply(Message):
    roots: Annotated[bytes, 1] = b""
    # The node is to renew its certificate now: another root signs, or it has another role.
    renew: Annotated[bool, 2] = False
    managers: Annotated[list[str], 3] = []


class EnterRequest(Message):
    # For a certificate of the swarm's own etcd (PKCS #10, DER); only its key counts.
    request: Annotated[bytes, 1] = b""


class EnterReply(Message):
    # Sealed for the one that asks; the second is empty for a swarm without autolock.
    key: Annotated[bytes, 1] = b""
    unlock_key: Annotated[bytes, 2] = b""
    # By which the swarm knows the new manager.
    address: Annotated[str, 3] = ""
    # Of the swarm's own etcd, in PEM, and where its members are, HOST:PORT; empty where the store is another one.
    root: Annotated[bytes, 4] = b""
    certificate: Annotated[bytes, 5] = b""
    members: Annotated[list[str], 6] = []
