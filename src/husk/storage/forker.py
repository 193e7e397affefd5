"""Where do workers come from? The process that forks them, with all that they need already imported.

A Python process of its own takes tens of milliseconds to start, most of it for imports; a fork takes two. `Nursery` in
the daemon starts this process when the first worker is wanted; it leaves when nobody has wanted one for a while, and
when the daemon has gone.

Standard input is a socket. A request is a JSON list (module, arguments) with the worker's standard input, its standard
output and perhaps one more descriptor, whose number becomes the last argument. The answer is `ok` with a pidfd, or the
reason why there is no worker.
"""

import gc
import importlib
import json
import os
import select
import socket
import sys
import traceback

LARGEST_REQUEST = 1 << 18

_MODULES = ("husk.storage.pack", "husk.storage.put", "husk.storage.unpack", "husk.storage.diff")
_LINGER_MS = 30_000


def main() -> None:
    mains = {name: importlib.import_module(name).main for name in _MODULES}
    # What is here now is every worker's; looking for garbage in it would only make copies of its pages.
    gc.freeze()
    channel = socket.socket(fileno=0)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    children: set[int] = set()
    while ready := poll.poll(_LINGER_MS):
        for fd, _ in ready:
            if fd in children:
                os.waitid(os.P_PIDFD, fd, os.WEXITED)
                poll.unregister(fd)
                children.discard(fd)
                os.close(fd)
                continue
            message, descriptors, _, _ = socket.recv_fds(channel, LARGEST_REQUEST, 3)
            if not message:
                return
            name, arguments = json.loads(message)
            try:
                pid = os.fork()
            except OSError as error:
                channel.send(f"cannot fork a worker: {error.strerror}".encode())
                pid = -1
            if pid == 0:
                for other in children:
                    os.close(other)
                _become(name, arguments, descriptors)
                _run(mains[name])
            for descriptor in descriptors:
                os.close(descriptor)
            if pid > 0:
                child = os.pidfd_open(pid)
                children.add(child)
                poll.register(child, select.POLLIN)
                socket.send_fds(channel, [b"ok"], [child])


def _become(name: str, arguments: list[str], descriptors: list[int]) -> None:
    os.setsid()
    os.dup2(descriptors[0], 0)
    os.dup2(descriptors[1], 1)
    for descriptor in descriptors[:2]:
        os.close(descriptor)
    sys.argv = [name, *arguments, *(str(descriptor) for descriptor in descriptors[2:])]


def _run(work: object) -> None:
    """A worker's whole life; never returns to the loop that the worker was forked out of."""
    status = 1
    try:
        assert callable(work)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
