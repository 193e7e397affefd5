"""Sealing of values that nobody may read from the disk, with a key of this data root: AES-256-GCM.

The key lies in a file of its own, readable by root alone, so that the state file can be copied, shown and backed up
without giving the values away. Each value is bound to its context: one cannot be put in another's place.

When it is locked, the key itself is on the disk only as a lock file (`locks.py`): whoever starts a daemon again
must bring the unlock key. Which of the two files counts is for the owner to say (`settle`); a change writes the new one
first, so that a crash at any point leaves at least one.
"""

import secrets
from pathlib import Path

from husk.errors import SystemFault, Unavailable
from husk.storage import secrets as sealed_values
from husk.storage.secrets import key_files, locks

_KEY_BYTES = 32


class Sealer:
    """The methods block: call them from a thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(path.stem + ".lock")
        self._key = b""
        self.locked = False
        # Since the start, with the unlock key.
        self._opened = False

    def seal(self, value: bytes, context: str) -> bytes:
        return sealed_values.ciphers.encrypt(self._load(), value, context.encode())

    def unseal(self, sealed: bytes, context: str) -> bytes:
        value = sealed_values.ciphers.decrypt(self._load(), sealed, context.encode())
        if value is None:
            raise SystemFault(f"{context} cannot be unsealed: {self._path} is not the key it was sealed with")
        return value

    # --- the lock

    def settle(self, locked: bool) -> None:
        """At a start: keep the one file that is to count, whatever a crash has left."""
        for path in (self._path, self._lock_path):
            key_files.destroy(key_files.beside(path))
        if self._lock_path.exists() and (locked or not self._path.exists()):
            # Also where others have unlocked the swarm while this host was away: its key is in the lock file alone.
            key_files.destroy(self._path)
            self.locked = not self._opened
        elif self._path.exists():
            key_files.destroy(self._lock_path)

    def look(self) -> None:
        """At a start, before it is known which file is to count: with a lock file alone it is locked."""
        if self._lock_path.exists() and not self._path.exists():
            self.locked = not self._opened

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
        key_files.write(self._lock_path, locks.make(self._load(), keys))

    def keep_locked(self) -> None:
        """From now on the lock file alone is on the disk."""
        key_files.destroy(self._path)

    def keep_open(self) -> None:
        """Write the key itself, and only then drop the lock file: see `drop_lock`."""
        key_files.write(self._path, self._load())

    def drop_lock(self) -> None:
        key_files.destroy(self._lock_path)

    def unlock(self, unlock_key: bytes) -> bool:
        """Open the lock file with this key, and tell if it was the right one."""
        self._key = locks.open_with(self._lock_path.read_bytes(), unlock_key) or b""
        self._opened = bool(self._key)
        self.locked = not self._opened
        return self._opened

    def close(self) -> None:
        """As before `unlock`."""
        self._key, self._opened, self.locked = b"", False, True

    def unlock_key(self) -> bytes:
        """The key that opens the lock file, and from now on the only one: until it is told, the one before does too."""
        content = self._lock_path.read_bytes()
        newest = locks.newest_key(content, self._load())
        if locks.has_others(content):
            self.lock(newest)
        return newest

    def forget(self) -> None:
        """Nothing that was sealed is needed any more."""
        self._key, self.locked, self._opened = b"", False, False
        key_files.destroy(self._path)
        key_files.destroy(self._lock_path)

    # --- another key

    def successor(self, name: str) -> "Sealer":
        """With a key of its own, in a file beside this one's until `succeed` puts it in its place."""
        return Sealer(self._path.with_name(f"{self._path.stem}.{name}{self._path.suffix}"))

    @property
    def is_there(self) -> bool:
        """True if its key is on the disk, be it locked."""
        return self._path.exists() or self._lock_path.exists()

    def succeed(self, successor: "Sealer") -> None:
        """Seal with the successor's key from now on: what was sealed before cannot be read any more. One with a lock
        file alone is locked. Where a crash comes between, call it again; nothing is done where the key is not there."""
        if successor.is_there:
            self.forget()
            self.locked, self._opened = not successor._path.exists(), False
            if self.locked:
                successor._lock_path.rename(self._lock_path)
            else:
                successor._path.rename(self._path)
            key_files.sync(self._path.parent)

    def _load(self) -> bytes:
        if self.locked:
            raise Unavailable(f"{self._lock_path} is locked")
        if not self._key:
            try:
                self._key = self._path.read_bytes()
            except FileNotFoundError:
                self._key = secrets.token_bytes(_KEY_BYTES)
                key_files.write(self._path, self._key)
            if len(self._key) != _KEY_BYTES:
                raise SystemFault(f"{self._path} is not a key of {_KEY_BYTES} bytes")
        return self._key
