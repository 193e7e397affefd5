"""The same Dockerfiles built by two engines: what they are built from, and what came out, in words to compare.

The corpus is data (`tests/parity/builds`); its contexts and base images are made here, the same bytes on every host but
for the program in the base image, which is not compared. What Docker's own daemon made of each Dockerfile is kept
beside the corpus (`answers.json`), so that comparing needs no second engine: `tests/parity/record_builds.py` writes it.
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from husk.storage.busybox import archive
from tests.support.build_client import PLUGIN
from tests.support.client import Client
from tests.support.machine import ARCHITECTURE
from tests.support.parity import PATH, RICH_IMAGE
from tests.support.registry import tar_of

CORPUS = Path(__file__).resolve().parents[1] / "parity/builds"
EPOCH = 1_600_000_000
WRITTEN = 1_500_000_000  # when all files of the context were written
SECRET = "a secret of the parity tests"
_RECENT = 1_700_000_000  # what is newer was made in the build
_AT_ONCE = 20  # with many more dockerd does not begin all of them in time
_CREATED = "2019-05-06T07:08:09Z"
_IMAGES: dict[str, dict[str, object]] = {
    "base": {"Cmd": ["sh"], "Env": [PATH]},
    "rich": RICH_IMAGE,
    "triggers": {"Env": [PATH], "OnBuild": ["COPY a.txt /copied", "RUN echo fired > /fired", "ENV FIRED=1"]},
}
_MODES = {"setuid": 0o4755, "private": 0o600, "run.sh": 0o755}
_FILES = {
    "a.txt": "a\n", "b.txt": "b\n", "c.log": "c\n", "with space.txt": "space\n", "[odd].txt": "odd\n",
    "uni-ü.txt": "ü\n", "dir/one.txt": "one\n", "dir/two.log": "two\n", "dir/deep/three.txt": "three\n",
    "dir/deep/.hidden": "hidden\n", "setuid": "s\n", "private": "p\n", "run.sh": "#!/bin/sh\n", "noted": "n\n",
    "hard1": "hard\n", "notarchive.tar": "no archive at all\n",
}  # fmt: skip
_LINKS = {"link": "a.txt", "dirlink": "dir", "badlink": "nowhere"}
_IGNORED = "# comment\n*.log\n/dir/deep\n!dir/deep/three.txt\n**/*.sh\nlink\nwith*\n[[]*\nempty/\n"


def cases() -> dict[str, dict[str, Any]]:
    """The corpus by names: each with what `options.toml` says of it."""
    told = _toml("options.toml")
    return {path.stem: told.get(path.stem, {}) for path in sorted(CORPUS.glob("*.dockerfile"))}


def classic_cases() -> list[str]:
    """Those that are built by the classic door as well."""
    return list(_toml("options.toml")["classic"])


def wrong(when: str) -> dict[str, str]:
    """Dockerfiles that are refused when they are `read`, or `built`, by names."""
    return dict(_toml("wrong.toml")[when])


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((CORPUS / name).read_text())


def answers() -> dict[str, Any]:
    told: dict[str, Any] = json.loads((CORPUS / "answers.json").read_text())
    return told


# -- what is built from ------------------------------------------------------------------------------------------------


def make_context(path: Path, *, ignored: bool = False) -> None:
    for name, text in _FILES.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(_MODES.get(name, 0o644))
    for name, target in _LINKS.items():
        (path / name).symlink_to(target)
    (path / "hard2").hardlink_to(path / "hard1")
    (path / "empty").mkdir()
    os.setxattr(path / "noted", "user.note", b"kept")
    plain = _archive()
    (path / "archive.tar").write_bytes(plain)
    (path / "archive.tar.gz").write_bytes(gzip.compress(plain, mtime=0))
    (path / "archive.tar.xz").write_bytes(lzma.compress(plain))
    (path / "archive.tar.bz2").write_bytes(bz2.compress(plain))
    if ignored:
        (path / ".dockerignore").write_text(_IGNORED)
    for directory in (path, path / "dir", path / "dir/deep", path / "empty"):
        directory.chmod(0o755)
    for top, names, files in os.walk(path):
        for name in (*names, *files, "."):
            os.utime(os.path.join(top, name), (WRITTEN, WRITTEN), follow_symlinks=False)


def _archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, target, text in (
            ("tree", tarfile.DIRTYPE, "", ""),
            ("tree/file", tarfile.REGTYPE, "", "in an archive\n"),
            ("sym", tarfile.SYMTYPE, "tree/file", ""),
            ("hard", tarfile.LNKTYPE, "tree/file", ""),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, len(text)
            entry.mode, entry.mtime, entry.uid, entry.gid = 0o750, WRITTEN - 5, 7, 8
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


@cache
def base_images() -> tuple[bytes, str]:
    """An archive as `docker save` makes it, and the diff id of the one layer that is in all of its images."""
    program = shutil.which("busybox")
    assert program is not None, "the host has no static busybox"
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    layer = _with_mount_points(archive(program, [name for name in listed if "/" not in name]))
    diff_id = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    manifest = []
    files = {"layer.tar": layer}
    for name, config in _IMAGES.items():
        history = [{"created": _CREATED, "created_by": "ADD busybox /", "comment": "made by hand"}]
        rootfs = {"type": "layers", "diff_ids": [diff_id]}
        document = {"architecture": ARCHITECTURE, "os": "linux", "created": _CREATED, "config": config}
        text = json.dumps({**document, "rootfs": rootfs, "history": history}).encode()
        digest = hashlib.sha256(text).hexdigest()
        files[f"{digest}.json"] = text
        manifest.append({"Config": f"{digest}.json", "RepoTags": [f"{name}:latest"], "Layers": ["layer.tar"]})
    files["manifest.json"] = json.dumps(manifest).encode()
    return tar_of(files), diff_id


def _with_mount_points(layer: bytes) -> bytes:
    """With all that engines mount things on, so that none has to make it."""
    out = io.BytesIO(layer)
    with tarfile.open(fileobj=out, mode="a") as tar:
        for name in ("proc", "sys", "dev/pts", "dev/shm", "dev/mqueue", "etc/hosts", "etc/resolv.conf", "etc/hostname"):
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.REGTYPE if name.startswith("etc/") else tarfile.DIRTYPE
            entry.mode = 0o644 if name.startswith("etc/") else 0o755
            tar.addfile(entry)
    return out.getvalue()


# -- building ----------------------------------------------------------------------------------------------------------


class Corpus:
    """Builds of the corpus by one engine; `directory` is for contexts and what clients keep."""

    def __init__(self, engine: Client, directory: Path) -> None:
        self.engine = engine
        self._directory = directory
        for name in ("plain", "ignored", "own", "negated", "everything"):
            make_context(_made(directory / name), ignored=name == "ignored")
        _made(directory / "cli/cli-plugins")
        (directory / "cli/cli-plugins/docker-buildx").symlink_to(PLUGIN)
        (directory / "secret").write_text(SECRET)
        engine.docker_bytes("load", input=base_images()[0])

    def build(self, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
        """Build the Dockerfiles, many in one run of one client, and return the configuration, history and layers of
        each."""
        told: dict[str, object] = {}
        names = list(wanted)
        for begin in range(0, len(names), _AT_ONCE):
            told |= self._bake({name: wanted[name] for name in names[begin : begin + _AT_ONCE]})
        return told

    def _bake(self, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
        targets = {}
        for name, options in wanted.items():
            targets[name] = {
                **options,
                "dockerfile": str(CORPUS / f"{name}.dockerfile"),
                "context": str(self._directory / options.get("context", "plain")),
                "args": {"SOURCE_DATE_EPOCH": str(EPOCH), **options.get("args", {})},
                "secret": [{**one, "src": str(self._directory / one["src"])} for one in options.get("secret", [])],
                "tags": [f"parity-{name}"],
                "output": [{"type": "docker"}],
            }
        file = self._directory / "bake.json"
        file.write_text(json.dumps({"target": targets}))
        done = self._docker("buildx", "bake", "--allow=fs.read=/", "--progress=plain", "-f", str(file), *wanted)
        assert done.returncode == 0, done.stderr[-4000:]
        return {name: self._told(f"parity-{name}") for name in wanted}

    def build_classic(self, name: str, options: Mapping[str, Any]) -> object:
        """The same by `POST /build`, without a client."""
        hosts = [f"{host}:{address}" for host, address in options.get("extra-hosts", {}).items()]
        query = {
            "t": f"parity-{name}",
            "target": options.get("target", ""),
            "buildargs": json.dumps({"SOURCE_DATE_EPOCH": str(EPOCH), **options.get("args", {})}),
            "labels": json.dumps(options.get("labels", {})),
            "extrahosts": ",".join(hosts),
        }
        error = self._post((CORPUS / f"{name}.dockerfile").read_bytes(), query)
        return {"error": error} if error else self._told(f"parity-{name}")

    def refuse(self, dockerfile: str) -> str:
        """Return the refusal of a Dockerfile by the classic door."""
        return self._post(dockerfile.encode(), {}) or "built"

    def complain(self, dockerfile: str) -> str:
        """Return the client's complaint about a Dockerfile: the error, behind the lines of the file if it shows
        them."""
        name = hashlib.sha256(dockerfile.encode()).hexdigest()[:12]
        file = _made(self._directory / name) / "Dockerfile"
        file.write_text(dockerfile)
        context = str(self._directory / "plain")
        done = self._docker("build", "--progress=plain", "-f", str(file), context)
        if done.returncode == 0:
            return "built"
        lines = done.stderr.splitlines()
        begin = [number for number, line in enumerate(lines) if line.startswith(("Dockerfile:", "ERROR:"))]
        return "\n".join(lines[begin[0] :]).strip()

    def _post(self, dockerfile: bytes, query: Mapping[str, str]) -> str:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(self._directory / "plain", arcname=".")
            entry = tarfile.TarInfo(".file-to-build")
            entry.size = len(dockerfile)
            tar.addfile(entry, io.BytesIO(dockerfile))
        path = "/build?" + urlencode({**query, "dockerfile": ".file-to-build"})
        answer = self.engine.http("POST", path, out.getvalue(), {"Content-Type": "application/x-tar"})
        told = [json.loads(line) for line in answer.body.splitlines() if line.strip()]
        return next((str(one[key]) for one in told for key in ("error", "message") if key in one), "")

    def _told(self, image: str) -> object:
        saved = self.engine.http("GET", f"/images/{image}/get")
        assert saved.status == 200, saved.body
        return _told(saved.body)

    def _docker(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        environment = {
            **os.environ,
            "DOCKER_HOST": self.engine.host,
            "DOCKER_CONFIG": str(self._directory / "cli"),
            "SOURCE_DATE_EPOCH": str(EPOCH),
            "BUILDX_NO_DEFAULT_ATTESTATIONS": "1",
        }
        return subprocess.run(
            ["docker", *arguments],
            env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
        )  # fmt: skip


def _made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


# -- what came out -----------------------------------------------------------------------------------------------------


def _told(saved: bytes) -> dict[str, object]:
    with tarfile.open(fileobj=io.BytesIO(saved)) as tar:
        manifest = json.loads(_member(tar, "manifest.json"))[0]
        document = json.loads(_member(tar, manifest["Config"]))
        diff_ids = document.pop("rootfs")["diff_ids"]
        layers = []
        for diff_id, name in zip(diff_ids, manifest["Layers"], strict=True):
            layers.append("<base>" if diff_id == base_images()[1] else _layer(_member(tar, name)))
    history = [
        {key: entry[key] for key in ("created_by", "created", "comment", "empty_layer") if key in entry}
        for entry in document.pop("history")
    ]
    shown: dict[str, Any] = json.loads(json.dumps(document).replace(ARCHITECTURE, "<architecture>"))
    # Settings that say nothing may be written down or not; nobody can tell.
    shown["config"] = {key: value for key, value in shown["config"].items() if value}
    return {"image": shown, "history": history, "layers": layers}


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None, name
    return file.read()


def _layer(data: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {entry.name.strip("/"): _entry(tar, entry) for entry in tar}


def _entry(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    if Path(entry.name).name.startswith(".wh."):
        return "removed"  # owner and times of such an entry mean nothing
    # What a build has made has the time of SOURCE_DATE_EPOCH here, so that digests are the same on every host. dockerd
    # gives it to the directories of WORKDIR alone; to the rest only when asked for.
    time = "now" if entry.mtime > _RECENT or entry.mtime == EPOCH else str(int(entry.mtime))
    words = [f"{entry.mode & 0o7777:04o} {entry.uid}:{entry.gid} {time}"]
    if entry.isdir():
        words.insert(0, "directory")
    elif entry.issym():
        words = [f"link to {entry.linkname} {words[0]}"]
    elif entry.islnk():
        words = [f"same as {entry.linkname}"]
    elif entry.isfile():
        words += ["file", _content(_member(tar, entry.name))]
    else:
        words.insert(0, f"device {entry.type!r} {entry.devmajor}:{entry.devminor}")
    words += [f"{key}={value}" for key, value in entry.pax_headers.items() if key.startswith("SCHILY.xattr.")]
    return " ".join(words)


def _content(data: bytes) -> str:
    if len(data) > 400 or b"\0" in data:
        return f"of {len(data)} bytes {hashlib.sha256(data).hexdigest()[:16]}"
    return repr(data.decode(errors="replace").replace(ARCHITECTURE, "<architecture>"))
