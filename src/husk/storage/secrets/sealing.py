"""How are values kept that nobody may read from the disk? Sealed with a key of this data root: AES-256-GCM.

The key lies in a file of its own, readable by root alone, so that the state file can be copied, shown and backed up
without giving the values away. Each value is bound to its context: one cannot be put in another's place.

When it is locked, the key itself is on the disk only as a lock file (`locks.py`): whoever starts a daemon again
must bring the unlock key. Which of the two files counts is for the owner to say (`settle`); a change writes the new one
first, so that a crash at any point leaves at least one.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from husk.errors import SystemFault, Unavailable
from husk.storage.secrets import locks

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_KEY_BYTES = 32
_NONCE_BYTES = 12


class Sealer:
    """The methods block: call them from a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(path.stem + ".lock")
        self._key = b""
        self.locked = False

    def seal(self, value: bytes, context: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, value, context.encode())

    def unseal(self, sealed: bytes, context: str) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context.encode())
        except InvalidTag:
            raise SystemFault(f"{context} cannot be unsealed: {self._path} is not the key it was sealed with") from None

    # --- the lock

    def settle(self, locked: bool) -> None:
        """At a start: keep the one file that is to count, whatever a crash has left."""
        for path in (self._path, self._lock_path):
            _destroy(_beside(path))
        if self._lock_path.exists() and (locked or not self._path.exists()):
            # Also where others have unlocked the swarm while this host was away: its key is in the lock file alone.
            _destroy(self._path)
            self.locked = True
        elif self._path.exists():
            _destroy(self._lock_path)

    def key(self) -> bytes:
        """For others who are to read what was sealed here."""
        return self._load()

    def adopt(self, key: bytes, unlock_key: bytes = b"") -> None:
        """Seal with the key of others from now on; with an unlock key only its lock file comes to the disk."""
        self._key, self.locked = key, False
        if unlock_key:
            self.lock(unlock_key)
            self.keep_locked()
        else:
            self.keep_open()
            self.drop_lock()

    def follow(self, unlock_key: bytes) -> None:
        """Others have locked the swarm with another key, or (empty) unlocked it: keep what is on the disk like that."""
        if self.locked:
            return
        has_lock = self._lock_path.exists()
        if not unlock_key and has_lock:
            self.keep_open()
            self.drop_lock()
        elif unlock_key and not (has_lock and locks.open_with(self._lock_path.read_bytes(), unlock_key)):
            self.lock(unlock_key)
            self.keep_locked()

    def lock(self, unlock_key: bytes, *, besides: bytes = b"") -> None:
        """Write the lock file; `besides` is another unlock key that opens it as well."""
        keys = [unlock_key, besides] if besides else [unlock_key]
        _write(self._lock_path, locks.make(self._load(), keys))

    def keep_locked(self) -> None:
        """From now on the lock file alone is on the disk."""
        _destroy(self._path)

    def keep_open(self) -> None:
        """Write the key itself, and only then drop the lock file: see `drop_lock`."""
        _write(self._path, self._load())

    def drop_lock(self) -> None:
        _destroy(self._lock_path)

    def unlock(self, unlock_key: bytes) -> bool:
        """Whether that was the right key."""
        self._key = locks.open_with(self._lock_path.read_bytes(), unlock_key) or b""
        self.locked = not self._key
        return not self.locked

    def unlock_key(self) -> bytes:
        """The key that opens the lock file, and from now on the only one: until it is told, the one before does too."""
        content = self._lock_path.read_bytes()
        newest = locks.newest_key(content, self._load())
        if locks.has_others(content):
            self.lock(newest)
        return newest

    def forget(self) -> None:
        """Nothing that was sealed is needed any more."""
        self._key, self.locked = b"", False
        _destroy(self._path)
        _destroy(self._lock_path)

    # --- another key

    def successor(self, name: str) -> "Sealer":
        """With a key of its own, in a file beside this one's until `succeed` puts it in its place."""
        return Sealer(self._path.with_name(f"{self._path.stem}.{name}{self._path.suffix}"))

    @property
    def is_there(self) -> bool:
        """Is its key on the disk, be it locked?"""
        return self._path.exists() or self._lock_path.exists()

    def succeed(self, successor: "Sealer") -> None:
        """Seal with the successor's key from now on: what was sealed before cannot be read any more. One with a lock
        file alone is locked. Where a crash comes between, call it again; nothing is done where the key is not there."""
        if successor.is_there:
            self.forget()
            self.locked = not successor._path.exists()
            if self.locked:
                successor._lock_path.rename(self._lock_path)
            else:
                successor._path.rename(self._path)
            _sync(self._path.parent)

    def _cipher(self) -> "AESGCM":
        # Importing it costs some 20 ms and 5 MiB, which daemons without secrets need not pay.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._load())

    def _load(self) -> bytes:
        if self.locked:
            raise Unavailable(f"{self._lock_path} is locked")
        if not self._key:
            try:
                self._key = self._path.read_bytes()
            except FileNotFoundError:
                self._key = secrets.token_bytes(_KEY_BYTES)
                _write(self._path, self._key)
            if len(self._key) != _KEY_BYTES:
                raise SystemFault(f"{self._path} is not a key of {_KEY_BYTES} bytes")
        return self._key


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _write(path: Path, content: bytes) -> None:
    """In one step, and on the disk when this returns."""
    fresh = _beside(path)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    fresh.rename(path)
    _sync(path.parent)


def _destroy(path: Path) -> None:
    """Overwrite before removing: where the disk writes in place, nothing of it is left. Safe to call twice."""
    with contextlib.suppress(FileNotFoundError):
        with path.open("r+b", buffering=0) as file:
            file.write(bytes(path.stat().st_size))
            os.fsync(file.fileno())
        path.unlink()
        _sync(path.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
