"""The records of pax headers: what a plain header has no room or no field for."""

from husk.storage.tar.entry import TarEntry, invalid
from husk.storage.tar.sparse import decimal, set_sparse

_XATTR = b"SCHILY.xattr."


def parse_pax(data: bytes) -> dict[bytes, bytes]:
    """The records of a pax header: `length key=value`, newline."""
    records: dict[bytes, bytes] = {}
    sparse: list[bytes] = []
    begin, size = 0, len(data)
    while begin < size:
        blank = data.find(b" ", begin, begin + 20)
        digits = data[begin:blank]
        if blank < 0 or not digits.isdigit():
            invalid()
        end = begin + int(digits)
        key, equals, value = data[blank + 1 : end].partition(b"=")
        if end > size or value[-1:] != b"\n" or not equals or not key:
            invalid()
        value = value[:-1]
        begin = end
        # Sparse format 0.0 repeats these two keys; 0.1 puts the same numbers into one record.
        if key in (b"GNU.sparse.offset", b"GNU.sparse.numbytes"):
            sparse.append(value)
        else:
            records[key] = value
    if sparse:
        records[b"GNU.sparse.map"] = b",".join(sparse)
    return records


def apply_pax(entry: TarEntry, records: dict[bytes, bytes]) -> None:
    """Let a pax header's records take the place of the fields in `entry`."""
    for key, value in records.items():
        if key == b"path":
            entry.name = value or entry.name
        elif key == b"linkpath":
            entry.link = value or entry.link
        elif key == b"size":
            entry.size = decimal(value)
        elif key == b"uid":
            entry.uid = decimal(value)
        elif key == b"gid":
            entry.gid = decimal(value)
        elif key == b"mtime":
            entry.mtime_ns = _seconds(value)
        elif key.startswith(_XATTR):
            entry.xattrs.append((key[len(_XATTR) :].decode("utf-8", "surrogateescape"), value))
    if b"GNU.sparse.map" in records:
        numbers = [decimal(number) for number in records[b"GNU.sparse.map"].split(b",") if number]
        entry.name = records.get(b"GNU.sparse.name", entry.name)
        set_sparse(entry, numbers, decimal(records.get(b"GNU.sparse.size", b"")))
    elif records.get(b"GNU.sparse.major") == b"1":
        entry.name = records.get(b"GNU.sparse.name", entry.name)
        entry.real_size = decimal(records.get(b"GNU.sparse.realsize", b""))
        entry.sparse = []  # the map comes first in the data


def _seconds(text: bytes) -> int:
    """A pax time (decimal fraction of seconds, perhaps negative) in nanoseconds, without the rounding of floats."""
    whole, _, fraction = text.partition(b".")
    if whole.isdigit() and fraction.isdigit() and len(whole) <= 20:
        return int(whole + fraction[:9].ljust(9, b"0"))
    whole, _, fraction = text.removeprefix(b"-").partition(b".")
    nanoseconds = decimal(whole or b"0") * 10**9 + decimal(fraction[:9].ljust(9, b"0"))
    return -nanoseconds if text.startswith(b"-") else nanoseconds
