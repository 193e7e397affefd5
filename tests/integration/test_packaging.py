"""The packages that users install: the wheel and the source archive, and a daemon out of an environment that has
nothing else."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.daemon import Daemon

ROOT = Path(__file__).resolve().parents[2]
VENDORED = ROOT / "src/husk/dashboard/static/vendor"
BUILD = "import sys; from setuptools import build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files of this tree that git knows, so that a build leaves nothing in it."""
    target = tmp_path_factory.mktemp("sources")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    archive = ["tar", "-c", "--null", "--ignore-failed-read", "-T", "-"]
    packed = subprocess.run(archive, input=names, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x"], input=packed, cwd=target, check=True)
    # What a set-up has fetched need not be fetched again.
    if VENDORED.exists():
        shutil.copytree(VENDORED, target / VENDORED.relative_to(ROOT))
    return target


@pytest.fixture(scope="module")
def wheel(sources: Path) -> Path:
    return built(sources, "build_wheel")


def test_the_wheel_has_the_package_its_types_and_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "husk/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "bench"))]


def test_the_source_archive_builds_the_same_wheel(sources: Path, wheel: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", built(sources, "build_sdist")], cwd=tmp_path, check=True)
    again = built(next(tmp_path.iterdir()), "build_wheel")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


@pytest.mark.skipif(not VENDORED.exists(), reason="needs a set-up that has reached npm's registry")
def test_the_wheel_has_the_scripts_of_others_with_their_licences(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("xterm.js", "xterm.css", "xterm.LICENSE.txt", "addon-fit.js", "addon-fit.LICENSE.txt"):
        assert f"husk/dashboard/static/vendor/{name}" in names


@pytest.mark.timeout(300)
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it runs a real container")
def test_a_daemon_installed_from_the_wheel_runs_a_container(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    copy_locked(next(environment.glob("lib/python*/site-packages")))
    # The locked dependencies are there: the wheel says itself what it needs, and anything else would be refused.
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin/python"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", str(wheel)], check=True)
    with Daemon(program=environment / "bin/husk") as daemon:
        assert daemon.docker("run", "--rm", "busybox", "echo", "hi").stdout == "hi\n"


def copy_locked(target: Path) -> None:
    """Copy what the lock names out of the environment of the tests, which pip has filled by the same lock: to find and
    unpack all of it again takes half a minute."""
    for name in re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE):
        for file in importlib.metadata.files(name) or ():
            if ".." not in file.parts:  # those are commands
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(str(file.locate()), target / file)


def built(directory: Path, what: str) -> Path:
    """Build with the locked setuptools; the path of what was made."""
    target = directory / "dist"
    target.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, what, str(target)]
    done = subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True)
    return target / done.stdout.splitlines()[-1]
