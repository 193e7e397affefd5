"""Certificates and tokens of a swarm: who belongs to it, and how its nodes know each other.

- `tokens` what a new node shows to be let in, and by which it knows the swarm's root certificate. Pure
- `holders` whose certificate it is: a node, its role, its swarm. Pure
- `authority` the swarm's CA: its root, the certificates that it signs, what a new root needs to be believed. No I/O
- `renewal` when a node asks for its next certificate. Pure
- `identity` a node's certificate and key: their files, and TLS with them
- `roots` the roots in the swarm's record: made, replaced, used

A certificate lives like this: a node makes a key, which never leaves it, and asks for a certificate with a join token;
from then on it asks with the certificate that it has, well before that ends. A new root is signed by the old one as
well: who believes in either then believes in certificates of the new one. When all nodes have one the old root goes.
"""

from typing import TYPE_CHECKING

from husk.aio.once import late

if TYPE_CHECKING:
    from husk.swarm.ca import authority as authority
else:
    # A door: to read and sign certificates `cryptography` takes 9 MB and a sixth of a start's time, and a swarm of one
    # host that is there does neither until another host knocks.
    __getattr__ = late(__name__, "authority")
