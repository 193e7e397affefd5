"""The doors that foreign bytes come through, each with valid examples, and with the ways in which it may refuse."""

import asyncio
import io
import json
import pkgutil
import random
import struct
import tarfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import hpack
import msgspec

import husk.builder.protocol.messages
from husk.api.http.errors import BadRequest
from husk.api.http.limits import HttpLimits
from husk.api.http.parser import HeadParser
from husk.api.types.containers import CreateExtras
from husk.builder.dockerfile import git_refs
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import Options
from husk.builder.graph import llb_read, llb_write, ops
from husk.builder.sources.git import chosen
from husk.engine.containers.config import limits as host_limits
from husk.engine.images.archive import read_archive
from husk.engine.images.changes import apply_changes
from husk.engine.images.make import read_config
from husk.engine.logs import attributes
from husk.engine.logs import options as log_options
from husk.engine.logs.messages import host_and_port
from husk.engine.logs.records import take_apart
from husk.engine.model import clock
from husk.engine.model.container import Container
from husk.engine.model.container_config import ContainerConfig, HostConfig
from husk.engine.model.filters import Filters
from husk.engine.model.image import Image
from husk.engine.model.network import Network, NetworkRequest
from husk.engine.networks.port_requests import parse_ports, stored
from husk.errors import HuskError
from husk.network import dns
from husk.registry import auth, failures, manifest, reference
from husk.registry.challenges import parse_challenges
from husk.registry.headers import resolve_location
from husk.rpc.grpc.status import GrpcError
from husk.rpc.grpc.stream import MessageReader
from husk.rpc.http2 import frames
from husk.rpc.http2.core import Http2
from husk.rpc.protobuf import Message
from husk.runtime import complaints
from husk.runtime.seccomp import custom_profile
from husk.runtime.spec import users
from husk.storage.tar.entry import TarError
from husk.storage.tar.stream import TarStream, entries
from husk.swarm.backup import file as backup_file
from husk.swarm.ca import authority, tokens
from husk.swarm.ca.holders import Holder
from husk.swarm.model.placement import parse_constraint
from husk.swarm.model.services import ServiceSpec
from husk.swarm.model.settings import SwarmSpec
from husk.swarm.port import assignment_messages
from husk.swarm.state import kinds as kinds
from husk.swarm.state.etcd.messages import KeyValue, WatchEvent, WatchResponse
from husk.swarm.state.etcd.translate import key_of, news_of
from husk.text import dockerignore, documents, globs, gojson, gotemplate, re2
from husk.text.endpoints import read_endpoint
from tests.fuzz import mutate
from tests.fuzz.judge import Target
from tests.unit.builder.dockerfile.building import AMD64, Images
from tests.unit.engine import records

_DIGEST = "sha256:" + "0123456789abcdef" * 4
CONFIG: dict[str, Any] = {
    "Hostname": "web", "User": "1000:www", "Env": ["PATH=/bin", "A=1"], "Cmd": ["sh", "-c", "true"], "Entrypoint": None,
    "Image": "busybox", "WorkingDir": "/srv", "ExposedPorts": {"80/tcp": {}, "8000-8010/udp": {}}, "Labels": {"a": "b"},
    "Volumes": {"/data": {}}, "StopSignal": "SIGTERM", "StopTimeout": 3, "Tty": False, "OnBuild": ["RUN x"],
    "Healthcheck": {"Test": ["CMD", "true"], "Interval": 1000000000, "Retries": 3},
}  # fmt: skip
_HOST_CONFIG: dict[str, Any] = {
    "Binds": ["/a:/b:ro", "v:/v"], "PortBindings": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"}]},
    "Memory": 1 << 30, "NanoCpus": 10**9, "CpusetCpus": "0", "RestartPolicy": {"Name": "on-failure"},
    "Ulimits": [{"Name": "nofile", "Soft": 1, "Hard": 2}], "Tmpfs": {"/t": "size=1m"}, "ShmSize": 1 << 20,
    "Mounts": [{"Type": "tmpfs", "Target": "/m", "TmpfsOptions": {"SizeBytes": 5}}], "NetworkMode": "bridge",
    "Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/n", "CgroupPermissions": "r"}],
    "Sysctls": {"net.core.somaxconn": "5"}, "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m"}},
    "BlkioWeightDevice": [{"Path": "/dev/sda", "Weight": 10}], "DeviceCgroupRules": ["c 1:3 rwm"],
}  # fmt: skip
_IMAGE_CONFIG = {
    "architecture": "amd64", "os": "linux", "created": "2026-01-02T03:04:05Z", "config": CONFIG,
    "rootfs": {"type": "layers", "diff_ids": [_DIGEST]}, "history": [{"created_by": "RUN x", "empty_layer": True}],
}  # fmt: skip
_DESCRIPTOR = {
    "mediaType": manifest.OCI_MANIFEST, "digest": _DIGEST, "size": 7,
    "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"},
}  # fmt: skip
_LAYER = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": _DIGEST, "size": 9}
_MANIFEST = {
    "schemaVersion": 2, "mediaType": manifest.OCI_MANIFEST, "layers": [_LAYER, _LAYER],
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": _DIGEST, "size": 5},
}  # fmt: skip
_INDEX = {"schemaVersion": 2, "mediaType": manifest.OCI_INDEX, "manifests": [_DESCRIPTOR]}
DOCKERFILES = [
    b"# syntax=docker/dockerfile:1\n# escape=`\nARG V=1\nFROM busybox AS a\nRUN <<EOF\necho $V\nEOF\n"
    b"ENV A=$V B=${A:-x}\n",
    b'FROM app\nCOPY --from=tools --chown=1:2 --chmod=0644 a b /c/\nCMD ["a", "b"]\nEXPOSE 80 90/udp 8000-8010\n',
    b"FROM --platform=linux/amd64 busybox\nRUN --mount=type=cache,target=/x,sharing=locked --network=none make\n",
    b"FROM scratch\nADD https://e.example/a.tar /x\nADD https://github.com/a/b.git#main:sub /y\nUSER a\nWORKDIR w\n",
    b"FROM busybox\nLABEL a=b c='d e'\nVOLUME /a\nHEALTHCHECK --interval=5s CMD true\nONBUILD RUN x\nSHELL [\"sh\"]\n"
    b"STOPSIGNAL 9\nMAINTAINER me\nENV A ${A/x/y} ${A#p} ${A%%q} ${A:+must} \\\n B\n",
]


def _json(*values: object) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


def _text(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """As the edge has texts of paths and queries: any byte may be in them."""
    return lambda data: read(data.decode(errors="surrogateescape"))


def _plain(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    return lambda data: read(data.decode(errors="replace"))


_RUNNER = asyncio.Runner()


def _dockerfile(text: str) -> Any:
    return _RUNNER.run(convert(text, Options(platform=AMD64, build_platform=AMD64), Images()))


def definitions() -> list[bytes]:
    found = []
    for text in DOCKERFILES:
        built = _dockerfile(text.decode())
        found.append(llb_write.definition(built.graph, built.root).encode())
    return found


def mutated_definition(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """Operations are named by their digests: who changes one names it anew in those that stand on it."""
    if chance.random() < 0.2:
        return mutated_message(chance, examples)
    wanted = ops.Definition.decode(chance.choice(examples))
    change = chance.randrange(max(1, len(wanted.definition)))
    names: dict[str, str] = {}
    for number, data in enumerate(wanted.definition):
        changed = mutated_message(chance, [data]) if number == change else data
        if number != change or chance.random() < 0.3:
            op = ops.Op.decode(data)
            for one in op.inputs:
                one.digest = names.get(one.digest, one.digest)
            if chance.random() < 0.1 and op.inputs:
                op.inputs = op.inputs * chance.choice((2, 50))
            if number != change:
                changed = op.encode()
        names[llb_read.digest_of(data)] = llb_read.digest_of(changed)
        wanted.definition[number] = changed
    wanted.metadata = {names.get(name, name): one for name, one in wanted.metadata.items()}
    return wanted.encode()[: mutate.LARGEST]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def wire(chance: random.Random, depth: int = 4) -> bytes:
    """Fields that some message of protobuf may have."""
    out = b""
    for _ in range(chance.choice((0, 1, 2, 5))):
        kind = chance.choice((0, 0, 2, 2, 2, 2, 5, 1))
        out += varint(chance.choice((1, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 20, 99)) << 3 | kind)
        match kind:
            case 0:
                out += varint(chance.choice((0, 1, 2, 5, 300, 2**31, 2**32, 2**63, -1)))
            case 1:
                out += chance.randbytes(8)
            case 5:
                out += chance.randbytes(4)
            case _:
                inner = wire(chance, depth - 1) if depth and chance.random() < 0.6 else mutate.text(chance).encode()
                inner *= chance.choice((1, 1, 1, 3))
                out += varint(len(inner)) + inner
    return out


def mutated_message(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    match chance.randrange(3):
        case 0:
            return wire(chance)[: mutate.LARGEST]
        case 1:
            return chance.choice(examples)[: mutate.LARGEST // 2] + wire(chance)[: mutate.LARGEST // 2]
        case _:
            return mutate.mutated(chance, examples)


def _messages() -> Iterator[type[Message]]:
    for module in pkgutil.iter_modules(husk.builder.protocol.messages.__path__):
        import_module(f"{husk.builder.protocol.messages.__name__}.{module.name}")
    import_module("husk.swarm.state.etcd.messages")
    import_module("husk.swarm.port.messages")
    waiting = list(Message.__subclasses__())
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("husk."):
            yield kind


_MESSAGES = sorted(_messages(), key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")


def _any_message(data: bytes) -> None:
    """The first byte chooses a kind, so that an input is the same in every run."""
    if data:
        kind = _MESSAGES[data[0] % len(_MESSAGES)]
        kind.decode(kind.decode(data[1:]).encode())


def _head(data: bytes) -> None:
    parser = HeadParser(HttpLimits())
    # In pieces: a head may be cut anywhere.
    for start in range(0, len(data), 4096):
        parser.feed(data[start : start + 4096])


def _frames(data: bytes, client: bool = False) -> None:
    core = Http2(client=client)
    core.feed(data)


def _http2_examples(preface: bytes) -> list[bytes]:
    headers = hpack.Encoder().encode(
        [(":method", "POST"), (":path", "/a.B/C"), (":scheme", "http"), ("te", "trailers")]
    )
    settings = frames.settings({frames.INITIAL_WINDOW_SIZE: 65535})
    call = frames.frame(1, 4, 1, headers) + frames.frame(0, 1, 1, b"\0\0\0\0\2hi")
    return [
        preface + settings + call,
        preface
        + settings
        + frames.window_update(0, 1000)
        + call
        + frames.reset(1, 8)
        + frames.frame(6, 0, 0, bytes(8)),
        preface + settings + frames.frame(1, 0, 1, headers[:3]) + frames.frame(9, 4, 1, headers[3:]),
        preface + settings + frames.go_away(0, 2, b"bye") + frames.frame(2, 0, 1, bytes(5)),
    ]


def _archives() -> list[bytes]:
    found = []
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        with io.BytesIO() as file:
            with tarfile.open(fileobj=file, mode="w", format=form) as archive:
                for name, kind in (("a/b", tarfile.REGTYPE), ("a/l", tarfile.SYMTYPE), ("d", tarfile.DIRTYPE)):
                    member = tarfile.TarInfo(name)
                    member.type, member.linkname = kind, "../x" if kind == tarfile.SYMTYPE else ""
                    member.size = 5 if kind == tarfile.REGTYPE else 0
                    member.pax_headers = (
                        {"SCHILY.xattr.user.a": "b", "mtime": "1.5"} if form == tarfile.PAX_FORMAT else {}
                    )
                    archive.addfile(member, io.BytesIO(b"hello"))
                long = tarfile.TarInfo("n" * (300 if form != tarfile.USTAR_FORMAT else 90))
                archive.addfile(long)
            found.append(file.getvalue())
    return found


def mutated_archive(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    """With sums that are right, or nobody would look at the rest."""
    data = bytearray(mutate.mutated(chance, examples))
    if chance.random() < 0.9:
        for start in range(0, len(data) - 511, 512):
            block = data[start : start + 512]
            if b"ustar" in block or start == 0:
                block[148:156] = b"        "
                data[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    return bytes(data)


def _archive(data: bytes) -> None:
    pieces = iter([memoryview(data), memoryview(b"")])
    stream = TarStream(lambda: next(pieces, memoryview(b"")))
    for entry in entries(stream):
        for _ in stream.pieces(entry.size):
            pass


def _log(data: bytes) -> None:
    """Whole lines, as the reader of logs gives them."""
    text = data[: data.rfind(b"\n") + 1]
    if text:
        for times in (True, False):
            take_apart(text, times=times)


def _question(name: str, kind: int) -> bytes:
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + dns.encode_name(name) + struct.pack("!HH", kind, 1)


def _dns(data: bytes) -> None:
    dns.refusal(data)
    query = dns.parse(data)
    dns.fit(query, dns.failure(query, 3))
    dns.answers(query, data)
    dns.reversed_address(query.name)


def _accounts(data: bytes) -> None:
    text = data.decode(errors="replace")
    passwd, _, group = text.partition("\n\n")
    for who in ("root", "www:adm", "12", passwd[:20]):
        try:
            users.resolve_user(who, passwd, group, ["adm"])
        except HuskError:
            continue


def _saved_archive(data: bytes) -> None:
    found = documents.decode(data, dict[str, msgspec.Raw])
    read_archive({name: bytes(value) for name, value in found.items()}, lambda path: True)


def _changes(data: bytes) -> None:
    apply_changes(ContainerConfig(), data.decode(errors="replace").split("\n")[:20])


def _template(text: str) -> None:
    gotemplate.parse(text).render(gotemplate.Structure(Name="web", Slot="1", Labels={"a": "b"}), {}).encode()


def _host_config(data: bytes) -> None:
    host = gojson.Reader(HostConfig).read(gojson.parse_document(data))
    host_limits.check(host)


def _reader(kind: type[Any]) -> Callable[[bytes], Any]:
    reader = gojson.Reader(kind)
    return lambda data: reader.read(gojson.parse_document(data))


def _record(kind: type[Any]) -> Callable[[bytes], Any]:
    return lambda data: documents.decode(data, kind)


def _ports_of_image(data: bytes) -> None:
    stored(gojson.Reader(ContainerConfig).read(gojson.parse_document(data)).exposed_ports)


def _refusals(data: bytes) -> None:
    head, _, body = data.partition(b"\n")
    challenges = parse_challenges([head.decode(errors="replace")])
    for status in (400, 401, 404, 429, 500):
        failures.read_refusal(status, challenges, body)


def _grpc(data: bytes) -> None:
    MessageReader().feed(data)


def _expressions(data: bytes) -> None:
    wanted, _, text = data.decode(errors="replace").partition("\n")
    re2.Finder([wanted]).finds(text)


def _ignores(data: bytes) -> None:
    patterns, _, path = data.decode(errors="replace").rpartition("\n")
    dockerignore.Ignore(dockerignore.read(patterns)).may_skip_directory(path)


SPEC = {
    "Name": "web", "Labels": {"a": "b"}, "Mode": {"Replicated": {"Replicas": 3}}, "Networks": [{"Target": "n"}],
    "TaskTemplate": {
        "ContainerSpec": {"Image": "busybox", "Args": ["x"], "Mounts": [{"Type": "volume", "Target": "/x"}]},
        "Resources": {"Limits": {"NanoCPUs": 10**9}}, "Placement": {"Constraints": ["node.role==manager"]},
        "RestartPolicy": {"Condition": "any", "Delay": 5 * 10**9},
    },
    "UpdateConfig": {"Parallelism": 1, "Order": "start-first"},
    "EndpointSpec": {"Ports": [{"TargetPort": 80, "PublishedPort": 8080}]},
}  # fmt: skip
CREATE = CONFIG | {"HostConfig": _HOST_CONFIG, "NetworkingConfig": {"EndpointsConfig": {"n": {"Aliases": ["a"]}}}}
NETWORK = {"Name": "n", "Driver": "bridge", "IPAM": {"Config": [{"Subnet": "10.1.0.0/16"}]}, "Options": {"a": "b"}}
_REFUSED = (HuskError,)
_TREE = mutate.mutated_json


def _as_stored(kind: type[Any], document: dict[str, Any]) -> Any:
    return msgspec.to_builtins(gojson.Reader(kind).read(document))


def _request(data: bytes) -> None:
    authority.issue(data, _HOLDER, _SIGNER, 1000.0, _NOW)


def _decoded(kind: type[Any]) -> Callable[[bytes], Any]:
    return lambda data: assignment_messages.decoded(data, kind)


def _news(data: bytes) -> None:
    news_of(WatchResponse.decode(data).events)


_NOW = 1.8e9
_SIGNER = authority.Signer(authority.new_root(_NOW), ())
_HOLDER = Holder("node", "worker", "swarm")
_BACKUP = backup_file.write(
    backup_file.BackupContent(swarm="s", node="n", schema=1, listen_address="", key=b"k", unlock_key=b"", records=[]),
    b"secret",
    "2026-01-02T03:04:05Z",
)
_EVENTS = WatchResponse(
    events=[WatchEvent(type=kind, kv=KeyValue(key=key_of("task", "a"), value=b"{}", mod_revision=5)) for kind in (0, 1)]
).encode()
_WITH_TIMES = {"id": "s", "version": 1, "created_at": "x", "updated_at": "x"}
_RECORDS = {
    "service": _WITH_TIMES | {"spec": _as_stored(ServiceSpec, SPEC)},
    "task": _WITH_TIMES
    | {"created_ns": 1, "service_id": "s", "service_name": "s", "slot": 1, "node_id": "n", "spec_version": 1}
    | {"spec": _as_stored(ServiceSpec, SPEC)["TaskTemplate"], "status": {"state": "running", "timestamp": "x"}},
    "secret": _WITH_TIMES | {"kind": "secret", "name": "x", "labels": {}, "sealed": "YQ=="},
    "node": _WITH_TIMES,
    "swarm": _WITH_TIMES | {"spec": {"Name": "default"}, "worker_token": "a", "manager_token": "b"},
}

_DIGITS = b"0" * 5000 + b"9" * 5000
# In the order that takes longest to normalize.
_ACCENTS = ("a" + "\u0300" * 10_000 + "\u0316" * 10_000).encode()
_KNOWN: dict[str, list[bytes]] = {
    "dockerfile": [
        b"FROM scratch\nADD https://[[[e.example/a.tar /x\n",
        b"FROM scratch\nADD https://" + _ACCENTS + b"/a.tar /x\nADD git@" + _ACCENTS + b":a/b.git /y\n",
        b"FROM busybox\nCOPY --from=" + _DIGITS + b" a b\n",
        b"FROM busybox\nCOPY --chown=" + _DIGITS + b" a b\n",
        b"FROM busybox\nRUN --mount=type=tmpfs,target=/x,size=" + _DIGITS + b" true\n",
    ],
    "accounts of an image": [b"root:x:" + _DIGITS + b":0::/:\nwww:x:" + b"0" * 5000 + b":1::/:\n"],
    "endpoint": [b"a:" + _DIGITS, b"(id)0(id)\xd9\xa1" * 3000, _ACCENTS],
    "repository": [b"https://" + _ACCENTS + b"/a.git"],
    "redirect": [b"//" + _ACCENTS + b"/a"],
    "receiver of logs": [_ACCENTS + b":514"],
    "size of a log": [b"9" * 400],
    "template of a service": [b"{{" + b'""' * 30, b"{{" + _DIGITS + b"}}", b'{{"\\ud800"}}'],
    "tag of a log": [b"{{" + b" " * 20_000],
    "constraint": [b"a==a" + b" " * 50_000 + b"\0"],
    "answer of a registry": [b'Bearer realm="a"' + b"0" * 30_000 + b'"'],
}

_TARGETS = [
    Target(
        "any document", _record(object), _json(CREATE, [1, [2, {"a": None}]]), (documents.MalformedDocument,), _TREE
    ),
    Target("image configuration", read_config, _json(_IMAGE_CONFIG), _REFUSED, _TREE),
    Target("ports of an image", _ports_of_image, _json(CONFIG), _REFUSED, _TREE),
    Target("manifest", lambda d: manifest.parse_manifest(d, manifest.OCI_MANIFEST), _json(_MANIFEST), _REFUSED, _TREE),
    Target("index", lambda d: manifest.parse_manifest(d, manifest.OCI_INDEX), _json(_INDEX), _REFUSED, _TREE),
    Target("blobs of a manifest", manifest.referenced, _json(_MANIFEST, _INDEX), (), _TREE),
    Target(
        "archive of images",
        _saved_archive,
        _json(
            {"manifest.json": [{"Config": "a.json", "RepoTags": ["x:1"], "Layers": ["l/layer.tar"]}]},
            {"index.json": {"manifests": [_DESCRIPTOR]}, f"blobs/sha256/{_DIGEST[7:]}": _MANIFEST},
        ),
        (HuskError, documents.MalformedDocument),
        _TREE,
    ),
    Target(
        "reference", _text(reference.parse), [b"busybox", b"reg.example:5000/a/b:1", b"a@" + _DIGEST.encode()], _REFUSED
    ),
    Target("platform", _text(manifest.parse_platform), [b"linux/arm64/v8", b"amd64"], _REFUSED),
    Target("dockerfile", _plain(_dockerfile), DOCKERFILES, (DockerfileError, HuskError), limit=1.0),
    Target(
        "repository",
        _plain(git_refs.parse),
        [b"https://github.com/a/b.git#main:dir", b"git@h.example:a/b"],
        (DockerfileError,),
    ),
    Target(
        "git ls-remote", lambda d: chosen("v1", d.decode(errors="replace")), [b"0" * 40 + b"\trefs/tags/v1\n"], _REFUSED
    ),
    Target(
        "definition",
        lambda data: llb_read.definition(ops.Definition.decode(data)),
        definitions(),
        _REFUSED,
        mutated_definition,
    ),
    Target("messages", _any_message, [bytes([number]) for number in range(len(_MESSAGES))], _REFUSED, mutated_message),
    Target("grpc", _grpc, [b"\0\0\0\0\2hi" * 3], (GrpcError, HuskError)),
    Target(
        "head of HTTP/1",
        _head,
        [
            b"GET /v1.44/containers/json?all=1&filters=%7B%7D HTTP/1.1\r\nHost: docker\r\nUser-Agent: x\r\n\r\n",
            b"POST /build HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
            b"2\r\nhi\r\n0\r\n\r\n",
            b"POST /session HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
        ],
        (BadRequest,),
    ),
    Target("frames of a client", _frames, _http2_examples(frames.PREFACE), ()),
    Target("frames of a server", lambda data: _frames(data, client=True), _http2_examples(b""), ()),
    Target(
        "filters",
        _text(lambda text: Filters.parse(text, None)),
        _json({"a": ["b"]}, {"a": {"b": True}}),
        _REFUSED,
        _TREE,
    ),
    Target("expression", _expressions, [b"a.*(b|c)+[^d-f]{2,3}$\naxxbcbcghi"], (re2.BadExpression, HuskError)),
    Target("tar", _archive, _archives(), (TarError,), mutated_archive),
    Target("ignore file", _ignores, [b"# x\n*.o\n!keep/**/a?[b-d]\n/x/\na/b/c.o"], (globs.BadPattern,), limit=1.0),
    Target(
        "log",
        _log,
        [b"2026-01-02T03:04:05.000000006+00:00 stdout F hi\n2026-01-02T03:04:05.000000006+01:00 stderr P a\n" * 3],
        (),
    ),
    Target("dns", _dns, [_question("web.example", 1), _question("4.3.2.1.in-addr.arpa", 12)], (dns.MalformedQuestion,)),
    Target(
        "accounts of an image", _accounts, [b"root:x:0:0::/root:/bin/sh\nwww:x:33:33::/:/x\n\nadm:x:4:root,www\n"], ()
    ),
    Target(
        "answer of a registry",
        _refusals,
        [b'Bearer realm="https://a/t",service="r",scope="x:y:z"\n{"errors":[{"code":"DENIED","message":"no"}]}'],
        _REFUSED,
    ),
    Target("credentials", _text(auth.parse_auth_header), [b"eyJ1c2VybmFtZSI6ImEiLCJwYXNzd29yZCI6ImIifQ=="], _REFUSED),
    Target("create request", _reader(ContainerConfig), _json(CREATE), _REFUSED, _TREE),
    Target("create extras", _reader(CreateExtras), _json(CREATE), _REFUSED, _TREE),
    Target("host configuration", _host_config, _json(_HOST_CONFIG), _REFUSED, _TREE),
    Target("network request", _reader(NetworkRequest), _json(NETWORK), _REFUSED, _TREE),
    Target("service", _reader(ServiceSpec), _json(SPEC), _REFUSED, _TREE),
    Target(
        "swarm", _reader(SwarmSpec), _json({"Name": "s", "Raft": {"ElectionTick": 10}, "CAConfig": {}}), _REFUSED, _TREE
    ),
    Target(
        "change of a commit",
        _changes,
        [b'ENV A=b\nCMD ["x"]\nEXPOSE 80/tcp', b"HEALTHCHECK NONE\nLABEL a=b c=d"],
        _REFUSED,
    ),
    Target(
        "template of a service",
        _plain(_template),
        [
            b'a{{.Name}} {{if eq .Slot "1"}}{{printf "%03d" 7}}{{end}}',
            b'{{range .Labels}}{{. | html}}{{end}}{{"a\\u0062"}}',
        ],
        _REFUSED,
        limit=0.5,
    ),
    Target("size of a log", _text(log_options.size), [b"10m", b"1.5g"], _REFUSED),
    Target("tag of a log", _plain(lambda text: attributes.check({"tag": text})), [b"{{.ID}}/{{- .Name -}}"], _REFUSED),
    Target("constraint", _plain(parse_constraint), [b"node.labels.a == b"], _REFUSED),
    Target("port", _text(parse_ports), [b"80/tcp", b"8000-8010"], _REFUSED),
    Target("endpoint", _text(lambda text: read_endpoint(text, 2377)), [b"192.0.2.1:2377", b"[::1]:5"], _REFUSED),
    Target("redirect", _text(lambda text: resolve_location("https://a.example/v2/", text)), [b"/v2/x?y=z"], _REFUSED),
    Target(
        "receiver of logs", _text(lambda text: host_and_port(text, 514)), [b"logs.example:514", b"[::1]:5"], _REFUSED
    ),
    Target("join token", _text(tokens.read_token), [tokens.new_token(b"root").encode()], _REFUSED),
    Target(
        "timestamp",
        _text(clock.parse_timestamp),
        [b"2026-01-02T03:04:05.1Z", b"1700000000.5", b"10m"],
        (*_REFUSED, ValueError),
    ),
    Target("duration", _text(clock.parse_duration), [b"1h30m5.5s"], (*_REFUSED, ValueError)),
    Target("backup of a swarm", backup_file.read_head, [_BACKUP], _REFUSED),
    Target("certificate request", _request, [authority.new_request()[1]], _REFUSED),
    Target(
        "assignments",
        _decoded(assignment_messages.AssignmentUpdate),
        _json({"all": True, "gone": ["a"], "dropped": [["secret", "s"]], "managers": [["n", "a:1"]]}),
        _REFUSED,
        _TREE,
    ),
    Target(
        "reports",
        _decoded(assignment_messages.Reports),
        _json({"reports": [{"task_id": "a", "status": {"state": "running", "timestamp": "x"}}]}),
        _REFUSED,
        _TREE,
    ),
    *(
        Target(
            f"{kind} of a swarm", kinds.READERS[kind], _json(example), (documents.MalformedDocument, HuskError), _TREE
        )
        for kind, example in _RECORDS.items()
    ),
    Target("news of etcd", _news, [_EVENTS], _REFUSED, mutated_message),
    Target(
        "seccomp profile",
        _plain(custom_profile.parse),
        _json(
            {
                "defaultAction": "SCMP_ACT_ALLOW",
                "syscalls": [
                    {
                        "names": ["a"],
                        "action": "SCMP_ACT_ERRNO",
                        "args": [{"index": 0, "op": "SCMP_CMP_EQ", "value": 1}],
                    }
                ],
            }
        ),
        (documents.MalformedDocument, HuskError),
        _TREE,
    ),
    Target("words of a runtime", _plain(complaints.complaint), [b'{"level":"error","msg":"x"}\nplain'], ()),
    Target(
        "record of a container",
        _record(Container),
        [msgspec.json.encode(records.container("web"))],
        (documents.MalformedDocument,),
        _TREE,
    ),
    Target(
        "record of an image",
        _record(Image),
        [msgspec.json.encode(records.image("web"))],
        (documents.MalformedDocument,),
        _TREE,
    ),
    Target(
        "record of a network",
        _record(Network),
        _json({"id": "a", "name": "n", "driver": "bridge", "created": "x"}),
        (documents.MalformedDocument,),
        _TREE,
    ),
]

TARGETS = [msgspec.structs.replace(target, known=_KNOWN.get(target.name, [])) for target in _TARGETS]
