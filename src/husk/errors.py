"""Errors, in the words of the API.

Every layer raises these; `husk.api.calls.errors` turns them into a status and `{"message": ...}`. An exception that is
not one of these is an internal fault: the client gets a 500, the log gets the traceback.
"""

import errno
import os
from typing import Self


class HuskError(Exception):
    """Base of everything that is reported to the client in its own words.

    try:
        await engine.containers.get("nobody")
    except husk.HuskError as error:
        print(error.message)
    """

    # In a client: is it the answer of the engine, not something that the client found by itself?
    from_engine = False

    @property
    def message(self) -> str:
        """The words for people."""
        return str(self.args[0]) if self.args else type(self).__name__

    def within(self, what: str) -> Self:
        """Give the same error, with the thing that failed because of it told before.

        :param what: that thing.
        :returns: the error.
        """
        told = type(self).__new__(type(self))
        told.__dict__.update(self.__dict__)
        told.args = (f"{what}: {self.message}", *self.args[1:])
        return told


class InvalidParameter(HuskError):
    """The request is malformed or asks for something impossible; nothing was changed."""


class Unauthorized(HuskError):
    """Credentials are missing or wrong."""


class Forbidden(HuskError):
    """The request is understood and refused."""


class NotFound(HuskError):
    """A thing that the request names does not exist."""


class Conflict(HuskError):
    """The request does not fit the present state of the thing it names."""


class NotModified(HuskError):
    """The thing is already in the state that the request asks for."""


class NotImplementedYet(HuskError):
    """Docker can do this and Husk cannot yet; `docs/compatibility.md` lists it as missing."""


class Unavailable(HuskError):
    """Something outside that the request depends on (a registry, a runtime) cannot be used now."""


class CommandFailed(HuskError):
    """A command that the request asked for has ended with a code that means failure."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code  #: The exit code


class BuildError(CommandFailed):
    """A build has ended without an image; `log` is what it told until then."""

    def __init__(self, message: str, code: int, log: str) -> None:
        super().__init__(message, code)
        self.log = log  #: What the build told until then


class SystemFault(HuskError):
    """The host or a tool on it failed; the message says which and how."""


class DiskFault(SystemFault):
    """The disk does not take what is to be written: it is full, or broken."""


def full_disk(error: BaseException) -> DiskFault | None:
    """Return the error to tell for one of the system's that means there is no room; None for all others."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    where = f"write {error.filename}: " if error.filename else ""
    return DiskFault(f"{where}{os.strerror(error.errno).lower()}")
