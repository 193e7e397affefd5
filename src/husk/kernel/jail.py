"""Takes from a process, and from all that it starts, what it does not need: for programs that work on what strangers
sent. The calls change the whole process: they are for workers, never for the daemon."""

import ctypes
import os
import select
import signal

_CLONE_NEWPID = 0x20000000
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_MOST_CAPABILITIES = 64

_libc = ctypes.CDLL(None, use_errno=True)


def own_processes() -> None:
    """Make the next process that this one starts the first of a PID namespace: when it ends, all below it end too."""
    if _libc.unshare(_CLONE_NEWPID) != 0:
        _fail("pid namespace")


def end_with(parent: int) -> None:
    """This process is killed when the one that has started it ends, of which `parent` is a descriptor."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        _fail("signal at the end of the parent")
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    if poll.poll(0):  # before that signal was asked for
        os._exit(1)


def give_up_powers() -> None:
    """Programs that are run from here on have no capabilities, though they be root's, and cannot get any."""
    for number in range(_MOST_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break  # the kernel knows no more of them
    else:
        raise AssertionError("there are more capabilities than are known here")
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        _fail("no new privileges")


def _fail(what: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), what)
