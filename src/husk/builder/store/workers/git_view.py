"""The host as git sees it: its programs and libraries, how names and certificates are found, and two directories.

    show(view, work, tree)

Afterwards there are `/work`, `/tree`, `/tmp`, and to be read alone `/usr` and a few files of `/etc`: no records, no
images, no keys of the host, no processes, no devices but three.
"""

import os
import stat
import sys

from husk.kernel import views
from husk.kernel.mount import mount

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WORK, TREE, TEMPORARY = "/work", "/tree", "/tmp"

_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_READ_ALONE = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
)
_COPIED = (
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/openssl.cnf",
)
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/zero")
_WRITTEN = {
    "/etc/passwd": "root:x:0:0:root:/tmp:/bin/sh\n",
    "/etc/group": "root:x:0:\n",
}
_LARGEST_COPY = 1 << 20


def show(view: str, work: str, tree: str) -> None:
    """`view` is a directory to mount on. Only what is imported already can be used afterwards."""
    views.unshare()
    mount("tmpfs", view, "tmpfs", data="mode=0755,size=80m")
    for path in _PROGRAMS:
        _show_programs(view, path)
    for path in _READ_ALONE:
        if os.path.isdir(path):
            _bind(view, path, path, readonly=True)
    for path in _COPIED:
        _copy(view, path)
    for path, text in _WRITTEN.items():
        _write(view, path, text.encode())
    for path in _DEVICES:
        _device(view, path)
    _bind(view, work, WORK)
    if tree:
        _bind(view, tree, TREE)
    os.mkdir(view + TEMPORARY, 0o700)
    views.pivot(view)
    os.umask(0o022)
    # Whatever would still be imported would now come out of what a stranger sent.
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_importer_cache.clear()


def _show_programs(view: str, path: str) -> None:
    if os.path.islink(path):
        os.symlink(os.readlink(path), view + path)
    elif os.path.isdir(path):
        _bind(view, path, path, readonly=True, programs=True)


def _bind(view: str, source: str, target: str, *, readonly: bool = False, programs: bool = False) -> None:
    os.makedirs(view + target, mode=0o755, exist_ok=True)
    place = os.open(view + target, os.O_PATH | os.O_DIRECTORY)
    try:
        views.bind(source, place)
    finally:
        os.close(place)
    mounted = os.open(view + target, os.O_PATH | os.O_DIRECTORY)
    try:
        views.restrict(mounted, readonly=readonly, programs=programs)
    finally:
        os.close(mounted)


def _device(view: str, path: str) -> None:
    """A file system that takes no devices would not open it: the host's own is mounted."""
    _write(view, path, b"")
    place = os.open(view + path, os.O_PATH)
    try:
        views.bind(path, place)
    finally:
        os.close(place)


def _copy(view: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                _write(view, path, file.read(_LARGEST_COPY))
    except OSError:
        return  # it is not there, or not meant to be read


def _write(view: str, path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(view + path), mode=0o755, exist_ok=True)
    with open(view + path, "wb") as file:
        file.write(data)
