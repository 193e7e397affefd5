"""The file that a backup of a swarm is: a line of JSON that says what it is, and behind it all of the swarm, sealed.

    {"Husk":"swarm backup","Version":1,"Swarm":"…","Made":"…","OpenedBy":"passphrase","Size":…,"Checksum":"…"}
    <sealed: the content as JSON, compressed>

It is sealed as a whole, with a passphrase; that of a swarm with autolock with the swarm's unlock key. So it is no less
secret than the disk of a manager, wherever it is kept. Pure, but for the random numbers in it.
"""

import hashlib
import hmac
import zlib
from typing import Literal

import msgspec
from msgspec import Struct

from husk.errors import InvalidParameter, SystemFault, Unauthorized
from husk.storage.secrets import passphrases
from husk.text.documents import MalformedDocument, decode

VERSION = 1
"""Of the form of the file: a daemon reads its own and all before."""
# How large a file may be, and what is in it. 20,000 tasks are about 40 MB.
LARGEST, LARGEST_CONTENT = 256 << 20, 1 << 30
_NAME = "swarm backup"
# The longest first line that is looked for.
_LONGEST_HEAD = 4096

OpenedBy = Literal["passphrase", "unlock key"]


class BackupHead(Struct, kw_only=True, rename="pascal"):
    """The first line of a backup, which anybody may read. `checksum` is that of the rest of it and of what follows."""

    husk: str
    version: int
    swarm: str
    made: str
    opened_by: OpenedBy
    size: int
    checksum: str


class _AnyHead(Struct, rename="pascal"):
    """The fields that the first line of every version has."""

    husk: str
    version: int


class SavedRecord(Struct, array_like=True):
    """A record: its kind, its key, its body."""

    kind: str
    key: str
    body: msgspec.Raw


class BackupContent(Struct, kw_only=True):
    """All that is needed to go on as the same swarm. `node` is the manager that made the backup."""

    swarm: str
    node: str
    # Of the records: as in the store of a host (`engine/migrations.py`).
    schema: int
    # Of its cluster port; empty for the usual one.
    listen_address: str
    # What secrets and keys are sealed with, and what opens a manager after a start; empty without autolock.
    key: bytes
    unlock_key: bytes
    records: list[SavedRecord]


def write(content: BackupContent, secret: bytes, made: str) -> bytes:
    """The whole file. Blocks for as long as it takes to seal it. SystemFault where nobody could read it back."""
    if not secret:
        raise InvalidParameter("a backup cannot be sealed with an empty passphrase")
    opened_by: OpenedBy = "unlock key" if content.unlock_key else "passphrase"
    head = BackupHead(
        husk=_NAME, version=VERSION, swarm=content.swarm, made=made, opened_by=opened_by, size=0, checksum=""
    )
    encoded = msgspec.json.encode(content)
    _check_size(len(encoded), LARGEST_CONTENT - 1)
    packed = zlib.compress(encoded, level=1)
    sealed = passphrases.seal(packed, secret, msgspec.json.encode(head))
    head.size = len(sealed)
    head.checksum = _checksum(head, sealed)
    line = msgspec.json.encode(head) + b"\n"
    _check_size(len(line) + len(sealed), LARGEST)
    return line + sealed


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise SystemFault(f"this swarm has too many records for a backup: {size} bytes, of {most} that can be restored")


def read_head(data: bytes) -> tuple[BackupHead, bytes]:
    """Split a file into its head and its sealed content; InvalidParameter for one that is not as it was made."""
    line, found, sealed = data[:_LONGEST_HEAD].partition(b"\n")
    sealed = data[len(line) + 1 :]
    try:
        any_head = decode(line, _AnyHead)
        if any_head.husk != _NAME or not found:
            raise ValueError
    except ValueError:
        raise InvalidParameter("this is not a backup of a swarm") from None
    if any_head.version > VERSION:
        raise InvalidParameter(
            f"this backup has the form {any_head.version}, of a newer release; this daemon reads {VERSION} and older"
        )
    try:
        head = decode(line, BackupHead)
    except MalformedDocument as error:
        raise InvalidParameter(f"this backup of a swarm is damaged: {error}") from None
    if len(sealed) < head.size:
        raise InvalidParameter(f"this backup of a swarm is cut off: {len(sealed)} of {head.size} bytes are there")
    if not hmac.compare_digest(head.checksum.encode(), _checksum(head, sealed).encode()):
        raise InvalidParameter("this backup of a swarm was changed since it was made: its checksum is another one")
    return head, sealed


def read(data: bytes, secret: bytes) -> BackupContent:
    """Read the content of a file; Unauthorized for a wrong passphrase. Blocks for as long as it takes to open it."""
    head, sealed = read_head(data)
    bound = msgspec.structs.replace(head, size=0, checksum="")
    packed = passphrases.unseal(sealed, secret, msgspec.json.encode(bound))
    if packed is None:
        raise Unauthorized(f"the backup cannot be opened: this is not its {head.opened_by}")
    try:
        unpacking = zlib.decompressobj()
        content = decode(unpacking.decompress(packed, LARGEST_CONTENT), BackupContent, largest=LARGEST_CONTENT)
        if content.swarm != head.swarm or not unpacking.eof:
            raise ValueError("it is of another swarm than it says")
        return content
    except (zlib.error, ValueError) as error:
        raise InvalidParameter(f"this backup of a swarm is damaged: {error}") from None


def _checksum(head: BackupHead, sealed: bytes) -> str:
    digest = hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(head, checksum="")) + b"\n")
    digest.update(sealed)
    return digest.hexdigest()
