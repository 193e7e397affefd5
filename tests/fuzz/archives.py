"""Archives for the doors that take some: `docker load`, `import`, `cp`, `build`, and the layers of a registry."""

import gzip
import io
import json
import random
import tarfile
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from urllib.parse import quote

from tests.fuzz import mutate, targets
from tests.fuzz.requests import Sent
from tests.support.registry import Image, digest_of, make_image

_NAMES = (
    "a",
    "a/b",
    "../x",
    "/x",
    ".wh.a",
    "a/.wh..wh..opq",
    ".",
    "a\n",
    "l/f",
    "n" * 300,
    "etc/passwd",
    "d\u00e9",
    "l",
)
_KINDS = (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"Z")


def archive(chance: random.Random, files: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """Entries of all kinds with odd names, numbers and attributes, and these files; then perhaps with other bytes."""
    with io.BytesIO() as file:
        form = chance.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT))
        with tarfile.open(fileobj=file, mode="w", format=form) as out:
            for name, content in files.items():
                _add(out, tarfile.TarInfo(name), content)
            for _ in range(chance.choice((0, 1, 3, 8))):
                member = tarfile.TarInfo(chance.choice(_NAMES))
                member.type, member.linkname = chance.choice(_KINDS), chance.choice(_NAMES)
                member.uid, member.gid = chance.choice((0, 1000, 65534, 2**21)), chance.choice((0, 2**21 - 1))
                member.mode = chance.choice((0o644, 0o7777, 0, 0o755))
                member.mtime = chance.choice((0, 1, 2**31, 2**33 - 1))
                if form == tarfile.PAX_FORMAT and chance.random() < 0.5:
                    member.pax_headers = {chance.choice(_ATTRIBUTES): mutate.text(chance)}
                content = b"x" * chance.choice((0, 5, 600)) if member.type == tarfile.REGTYPE else b""
                try:
                    _add(out, member, content)
                except (ValueError, OverflowError):  # the form has no room for it
                    continue
        data = file.getvalue()
    if chance.random() < 0.4:
        data = targets.mutated_archive(chance, [data])
    return gzip.compress(data) if chance.random() < 0.2 else data


_ATTRIBUTES = (
    *("SCHILY.xattr.user.a", "SCHILY.xattr.security.capability", "mtime", "size", "path", "linkpath", "uid"),
    *("GNU.sparse.map", "GNU.sparse.major"),
)


def _add(out: tarfile.TarFile, member: tarfile.TarInfo, content: bytes) -> None:
    member.size = len(content)
    out.addfile(member, io.BytesIO(content))


def image(chance: random.Random) -> Image:
    """One whose configuration, manifest or layers are not as they should be, with digests that fit most of the time."""
    layers = [archive(chance) for _ in range(chance.choice((1, 1, 2)))]
    made = make_image(layers, dict(targets.CONFIG), media=chance.choice(("oci", "docker")))
    manifest = json.loads(made.manifest)
    config = made.blobs[made.config_digest]
    if chance.random() < 0.5:
        config = mutate.mutated_json(chance, [config])
        made.blobs[digest_of(config)] = config
        manifest["config"] |= {"digest": digest_of(config), "size": len(config)}
    text = json.dumps(manifest).encode()
    if chance.random() < 0.5:
        text = mutate.mutated_json(chance, [text])
    return Image(text, made.media_type, made.blobs, digest_of(config), made.layer_digests, made.platform)


def saved(chance: random.Random) -> bytes:
    """Return an archive as `docker save` might have written it."""
    made = image(chance)
    files = {f"blobs/sha256/{digest[7:]}": blob for digest, blob in made.blobs.items()}
    files[f"blobs/sha256/{made.digest[7:]}"] = made.manifest
    index = {
        "schemaVersion": 2,
        "manifests": [{"mediaType": made.media_type, "digest": made.digest, "size": len(made.manifest)}],
    }
    paths = [f"blobs/sha256/{digest[7:]}" for digest in made.layer_digests]
    listed = [{"Config": f"blobs/sha256/{made.config_digest[7:]}", "RepoTags": ["app:1"], "Layers": paths}]
    documents = {"index.json": index, "oci-layout": {"imageLayoutVersion": "1.0.0"}, "manifest.json": listed}
    for name, document in documents.items():
        if chance.random() < 0.7:
            text = json.dumps(document).encode()
            files[name] = mutate.mutated_json(chance, [text]) if chance.random() < 0.3 else text
    return archive(chance, files)


def context(chance: random.Random) -> bytes:
    """Return the context of a build."""
    files = {"Dockerfile": mutate.mutated(chance, targets.DOCKERFILES) if chance.random() < 0.7 else _BUILD}
    if chance.random() < 0.3:
        files[".dockerignore"] = mutate.mutated(chance, [b"*.o\n!keep/**/a?[b-d]\n"])
    return archive(chance, {**files, "file": b"x"})


_BUILD = b"FROM busybox\nCOPY . /in/\nADD file a* /out/\nRUN true\nUSER 1000\nWORKDIR /w\n"


def request(chance: random.Random, names: Sequence[str]) -> Sent:
    """One of the requests that have an archive for a body."""
    match chance.randrange(4):
        case 0:
            target, data, method = "/images/load?quiet=1", saved(chance), "POST"
        case 1:
            change = quote(mutate.mutated(chance, [b"CMD true", b"ENV a=b"]).decode(errors="replace")[:500])
            target, data, method = (
                f"/images/create?fromSrc=-&repo=imported&tag=x&changes={change}",
                archive(chance),
                "POST",
            )
        case 2:
            path = quote(chance.choice(("/", "/tmp", "/etc/passwd", "", "..", mutate.text(chance)))[:500])
            target = f"/containers/{quote(chance.choice(names))}/archive?path={path}&copyUIDGID={chance.randrange(2)}"
            data, method = archive(chance), "PUT"
        case _:
            version = chance.choice(("1", "1", "2"))
            words = {name: mutate.text(chance)[:300] for name in chance.sample(_BUILD_WORDS, chance.choice((0, 1, 2)))}
            query = "".join(f"&{name}={quote(value)}" for name, value in words.items())
            target, data, method = f"/build?version={version}&t=built{query}", context(chance), "POST"
    return Sent(method, target, {"Content-Type": "application/x-tar"}, data, stream=True)


_BUILD_WORDS = (
    *("dockerfile", "buildargs", "labels", "target", "platform", "cachefrom", "memory", "cpusetcpus", "networkmode"),
    *("extrahosts", "shmsize", "ulimits", "remote", "squash", "rm", "nocache", "outputs", "cgroupparent"),
)
