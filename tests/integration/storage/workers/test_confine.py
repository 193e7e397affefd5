"""A worker that has confined itself sees a container's files and nothing else. Each view is a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import husk

BEGIN = """
import os, sys
from husk.storage.workers.confine import confine, enter
from husk.storage.workers.parts import Bind, Memory
"""


def inside(*lines: str) -> subprocess.CompletedProcess[str]:
    code = BEGIN + "\n".join(lines)
    environment = {**os.environ, "PYTHONPATH": str(Path(husk.__file__).parent.parent)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/file").write_text("of the container")
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume/data").write_text("of the volume")
    (tmp_path / "root/up").symlink_to("/../../..")
    return tmp_path / "root"


def test_the_root_is_all_there_is(root: Path) -> None:
    done = inside(
        f"confine({str(root)!r}, [])",
        "print(sorted(os.listdir('/')), open('/etc/file').read(), sorted(os.listdir('/up')))",
        "try:\n    import http.client\nexcept ImportError:\n    print('no imports')",
    )
    assert done.stdout.splitlines() == ["['etc', 'up'] of the container ['etc', 'up']", "no imports"], done.stderr


def test_mounts_are_where_the_container_has_them(root: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    done = inside(
        f"binds = [Bind({str(volume / 'data')!r}, '/deep/er/file', False), Bind({str(volume)!r}, '/data', True),",
        "         Bind('/nowhere-at-all', '/missing', False)]",
        f"confine({str(root)!r}, binds)",
        "print(open('/deep/er/file').read(), os.listdir('/data'), os.path.exists('/missing'))",
        "open('/deep/er/file', 'a').write('!')",
        "try:\n    open('/data/new', 'w')\nexcept OSError as error:\n    print(error.strerror)",
    )
    assert done.stdout.splitlines() == ["of the volume ['data'] False", "Read-only file system"], done.stderr
    assert (volume / "data").read_text() == "of the volume!"
    assert os.path.ismount(root / "data") is False, "nothing of it is seen outside"


def test_memory_of_a_process_that_is_another_one_by_now_is_not_taken(root: Path) -> None:
    """Its number was given anew: this process has another root, and the host's /dev/shm is not the container's."""
    done = inside(
        f"print(confine({str(root)!r}, [], Memory(['/dev/shm'], os.getppid())), os.path.exists('/dev/shm'))",
        "",
    )
    assert done.stdout == "set() False\n", done.stderr


def test_memory_of_a_process_that_is_gone_is_not_taken(root: Path) -> None:
    done = inside(f"print(confine({str(root)!r}, [], Memory(['/dev/shm'], 1 << 22)), sorted(os.listdir('/')))")
    assert done.stdout == "set() ['etc', 'up']\n", done.stderr


def test_programs_and_devices_are_of_no_use(root: Path) -> None:
    (root / "true").write_bytes(Path("/bin/true").read_bytes())
    (root / "true").chmod(0o755)
    os.mknod(root / "null", 0o20666, os.makedev(1, 3))
    done = inside(
        f"confine({str(root)!r}, [])",
        "for work in (lambda: os.execv('/true', ['true']), lambda: os.open('/null', os.O_RDWR)):",
        "    try:\n        work()\n    except PermissionError:\n        print('refused')",
    )
    assert done.stdout.splitlines() == ["refused", "refused"], done.stderr


def test_entering_a_layer_leaves_the_rest_behind(root: Path) -> None:
    done = inside(f"enter({str(root)!r})", "print(os.getcwd(), sorted(os.listdir('/')), oct(os.umask(0)))")
    assert done.stdout.split("\n")[0] == "/ ['etc', 'up'] 0o0", done.stderr


def test_nothing_mounted_in_a_view_comes_back_to_the_container(root: Path, tmp_path: Path) -> None:
    """Its tmpfs is shared, as `mount --make-rshared /` makes it, and a volume is below it."""
    (root / "t").mkdir()
    made = 'mount -t tmpfs t "$0/t" && mkdir "$0/t/v" && mount --make-shared "$0/t" && echo made'
    told = 'read _; grep -c "$0/t/v" /proc/self/mountinfo'
    done = inside(
        "import subprocess",
        "from husk.kernel import views",
        f"words = ['unshare', '--mount', 'sh', '-c', {f'{made}; {told}'!r}, {str(root)!r}]",
        "box = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)",
        "box.stdout.readline()",
        # A container has its tmpfs at the place itself, this one below its root.
        "home, there = (os.open(f'/proc/{each}/ns/mnt', os.O_RDONLY) for each in ('self', box.pid))",
        "views._enter(there)",
        f"tree = views._tmpfs_at({str(root / 't')!r})",
        "views._enter(home)",
        "views.memory_of = lambda *_: {'/t': tree}",
        "if not (view := os.fork()):",
        f"    confine({str(root)!r}, [Bind({str(tmp_path / 'volume')!r}, '/t/v', True)], Memory(['/t'], box.pid))",
        "    print(os.listdir('/t/v'), flush=True)",
        "    os._exit(0)",
        "os.waitpid(view, 0)",
        "print(box.communicate('')[0].strip())",
    )
    assert done.stdout.splitlines() == ["['data']", "0"], done.stderr
