"""The process that forks workers, with all that they need already imported.

A Python process of its own takes tens of milliseconds to start, most of it for imports; a fork takes two. `Nursery` in
the daemon starts this process when the first worker is wanted; it leaves when there has been none for a while, and
when the daemon has gone, with all workers: what they do is nobody's then, and is in the way of the next daemon.

Standard input is a socket. Each request is answered with `ok` and two descriptors: one of a new worker's process, and
the line on which that waits for its work; or with the reason why there is no worker. The work is a job (`messages`)
with descriptors: the worker's standard input, its standard output, the pipe for its answers, and perhaps a file with
the beginning of its input. A worker whose line is closed without any work leaves. `load` and the name of a module,
which is not answered, has that module in all workers from then on: rooms above storage have work for them, too.
"""

import gc
import importlib
import os
import select
import socket
import tarfile  # noqa: F401 (a worker in its confinement finds no modules: what it may need is here before)
from typing import NoReturn

from husk.kernel import jail
from husk.kernel.memory import keep_much, own_pages
from husk.storage.workers.caller import Caller
from husk.storage.workers.fault import tell_fault
from husk.storage.workers.jobs import DiffJob, PackJob, PutJob, UnpackJob
from husk.storage.workers.messages import LARGEST_JOB, decode_job, encode

IDLE_NAME = "husk-idle"
FORK, LOAD = b"fork", b"load "
LONGEST_REQUEST = 256

# To start takes 70 ms, which a copy would have to wait for; to stay takes 11 MiB.
_LINGER_MS = 600_000
# A worker that is in reserve has the time to make ready.
_WORK_COMES_WITHIN = 0.01


def main() -> None:
    keep_much()  # a worker lives for one job
    for job in (UnpackJob, DiffJob, PackJob, PutJob):
        importlib.import_module(job.worker)
    # To decode the first one takes ten times as long as any other: not in every worker again.
    decode_job(encode(DiffJob("")))
    # What is here now is every worker's; looking for garbage in it would only make copies of its pages.
    gc.freeze()
    channel = socket.socket(fileno=0)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    children: set[int] = set()
    itself = os.pidfd_open(os.getpid())
    while ready := poll.poll(None if children else _LINGER_MS):
        for descriptor, _ in ready:
            if descriptor in children:
                os.waitid(os.P_PIDFD, descriptor, os.WEXITED)
                poll.unregister(descriptor)
                children.discard(descriptor)
                os.close(descriptor)
                continue
            try:
                request = channel.recv(LONGEST_REQUEST)
            except ConnectionResetError:  # the daemon has ended without reading an answer
                return
            if not request:
                return
            if request.startswith(LOAD):
                _load(request.removeprefix(LOAD).decode())
                continue
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with ours, theirs:
                try:
                    pid = os.fork()
                except OSError as error:
                    channel.send(f"cannot fork a worker: {error.strerror}".encode())
                    continue
                if pid == 0:
                    jail.end_with(itself)
                    ours.close()
                    for other in (*children, itself):
                        os.close(other)
                    _work(theirs)
                child = os.pidfd_open(pid)
                socket.send_fds(channel, [b"ok"], [child, ours.fileno()])
            children.add(child)
            poll.register(child, select.POLLIN)


def _load(module: str) -> None:
    """Load a module; if it cannot be loaded, the worker that needs it tells so."""
    try:
        importlib.import_module(module).warm_up()
    except Exception:
        tell_fault()
    gc.freeze()


def _work(line: socket.socket) -> NoReturn:
    """A worker's whole life; never returns to the loop that the worker was forked out of."""
    status = 1
    try:
        os.setsid()
        _call_itself(IDLE_NAME)
        # The forker's own channel: the daemon must see from it whether the forker lives.
        os.dup2(line.fileno(), 0)
        if not select.select([line], [], [], _WORK_COMES_WITHIN)[0]:
            own_pages()
        with line:
            request, descriptors, _, _ = socket.recv_fds(line, LARGEST_JOB, 4)
        if request:
            job = decode_job(request)
            _call_itself(f"husk-{job.__struct_config__.tag}")
            for number in (0, 1):
                os.dup2(descriptors[number], number)
                os.close(descriptors[number])
            importlib.import_module(job.worker).main(job, Caller(*descriptors[2:]))
        status = 0
    except BaseException:
        tell_fault()
    finally:
        os._exit(status)


def _call_itself(name: str) -> None:
    """Set the name of this process that `ps` and `top` show."""
    descriptor = os.open("/proc/self/comm", os.O_WRONLY)
    os.write(descriptor, name.encode())
    os.close(descriptor)
