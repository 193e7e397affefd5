"""The identity of a node: its certificate and key, and the roots that it believes in. Their files, and TLS with them.

In a directory of the node's own, each written in one step: `roots.crt`, `node.crt` with what it needs to be believed,
and `node.key`, readable by root alone and sealed by whoever owns the directory, so that a locked swarm's is locked too.

Key and certificate are two files, and a crash may come between them: a new key is written as `next.key` before its
certificate is, and read where it is the one that fits.
"""

import contextlib
import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from husk.errors import InvalidParameter
from husk.kernel.disk import sync_directory

ROOTS, CERTIFICATE, KEY, NEXT_KEY = "roots.crt", "node.crt", "node.key", "next.key"
_FILES = (ROOTS, CERTIFICATE, KEY, NEXT_KEY)

Sealing = Callable[[bytes], bytes]
# OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for.
_NO_CHECK_TIME = 0x200000


class Identity(NamedTuple):
    """All in PEM; `roots` and `certificate` may be several, one behind the other."""

    roots: bytes
    certificate: bytes
    key: bytes

    def server_context(self) -> ssl.SSLContext:
        """Make a server's TLS. Callers may show a certificate, which must be of our swarm; whether it has ended, the
        server looks itself. TLS 1.3 alone, as always."""
        context = _context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL
        # A node whose certificate was signed by a clock that was ahead has to be heard, or it never gets another one.
        context.verify_flags |= _NO_CHECK_TIME
        # A session taken up again would not be looked at anew.
        context.num_tickets = 0
        return self._equipped(context)

    def client_context(self) -> ssl.SSLContext:
        """To call managers, with our own certificate."""
        return self._equipped(_context(ssl.PROTOCOL_TLS_CLIENT))

    def _equipped(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.load_verify_locations(cadata=self.roots.decode("ascii"))
        with _in_memory(self.certificate) as certificate, _in_memory(self.key) as key:
            context.load_cert_chain(certificate, key)
        return context


def joining_context(roots: bytes | None) -> ssl.SSLContext:
    """To call a manager before we are anybody; without roots it may be anybody too: only to ask for the roots."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    if roots is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=roots.decode("ascii"))
    return context


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    return context


class IdentityFiles:
    """The methods block: call them from a thread."""

    def __init__(self, directory: Path, seal: Sealing, unseal: Sealing, fits: Callable[[bytes, bytes], bool]) -> None:
        self._directory = directory
        self._seal = seal
        self._unseal = unseal
        # Does a key fit a certificate?
        self._fits = fits

    def load(self) -> Identity | None:
        """None where there is none, or none that is whole: what the disk has damaged is as good as gone."""
        try:
            found = self._load()
            if found is not None:
                found.client_context()
            return found
        except (FileNotFoundError, ValueError, ssl.SSLError, InvalidParameter):
            return None

    def _load(self) -> Identity | None:
        roots, certificate = (self._directory.joinpath(name).read_bytes() for name in (ROOTS, CERTIFICATE))
        for name in (KEY, NEXT_KEY):
            with contextlib.suppress(FileNotFoundError):
                key = self._unseal(self._directory.joinpath(name).read_bytes())
                if self._fits(certificate, key):
                    if name == NEXT_KEY:
                        self._directory.joinpath(name).replace(self._directory / KEY)
                        sync_directory(self._directory)
                    return Identity(roots, certificate, key)
        return None

    def save(self, identity: Identity) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        sealed = self._seal(identity.key)
        for name, content in (
            (NEXT_KEY, sealed),
            (ROOTS, identity.roots),
            (CERTIFICATE, identity.certificate),
            (KEY, sealed),
        ):
            self._write(name, content)
        self._directory.joinpath(NEXT_KEY).unlink()

    def _write(self, name: str, content: bytes) -> None:
        """In one step, and on the disk when this returns."""
        path, fresh = self._directory / name, self._directory / (name + ".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb", buffering=0) as file:
            file.write(content)
            os.fsync(descriptor)
        fresh.rename(path)
        sync_directory(self._directory)


def forget(directory: Path) -> None:
    """Nothing is left of a node's identity. Safe to call twice; blocks."""
    for name in (*_FILES, *(name + ".new" for name in _FILES)):
        directory.joinpath(name).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        directory.rmdir()


def supersede(directory: Path, fresh: Path) -> None:
    """Put the identity in `fresh` in the place of a node's. If a crash comes between, call it again; nothing is done if
    there is no such directory. Blocks."""
    if fresh.exists():
        forget(directory)
        fresh.rename(directory)
        sync_directory(directory.parent)


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[str]:
    """A path for those who read files only; nothing comes to the disk."""
    descriptor = os.memfd_create("husk", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
