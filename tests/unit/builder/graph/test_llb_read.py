"""Messages of clients are read with their digests; those that cannot be right are refused, and never crash the
reader."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.graph import llb_read, ops
from husk.builder.graph import operations as ours
from husk.builder.graph.graph import GraphLimits
from husk.builder.graph.llb_read import ReadLimits, digest_of
from husk.errors import HuskError, InvalidParameter, NotImplementedYet

SOURCE = ops.Op(source=ops.SourceOp("docker-image://x"))
FROM = digest_of(SOURCE.encode())
ROOT = ops.Mount(input=0, dest="/", output=0)


def defined(*several: ops.Op, result: int = -1) -> ops.Definition:
    data = [op.encode() for op in several]
    last = ops.Op(inputs=[ops.Input(digest_of(data[result]))])
    return ops.Definition(definition=[*data, last.encode()])


def test_vertices_have_the_clients_digests_and_names() -> None:
    run = ops.Op(inputs=[ops.Input(FROM)], exec=ops.ExecOp(ops.Meta(args=["true"]), [ROOT]))
    sent = defined(SOURCE, run)
    digest = digest_of(run.encode())
    sent.metadata[digest] = ops.OpMetadata(
        description={"llb.customname": "[2/2] RUN true"},
        progress_group=ops.ProgressGroup("group"),
        linux_resources=ops.LinuxResources(memory=5),
    )
    read = llb_read.definition(sent)
    assert read.edge == ours.Edge(digest)
    assert [vertex.name for vertex in read.graph] == ["docker-image://x", "[2/2] RUN true"]
    vertex = read.graph[digest]
    assert vertex.group == "group"
    assert isinstance(vertex.operation.body, ours.Exec)
    assert vertex.operation.body.process.limits.memory == 5


def test_operations_may_come_in_any_order() -> None:
    run = ops.Op(inputs=[ops.Input(FROM)], exec=ops.ExecOp(ops.Meta(args=["true"]), [ROOT]))
    read = llb_read.definition(defined(run, SOURCE, result=0))
    assert [vertex.digest for vertex in read.graph] == [FROM, digest_of(run.encode())]


def test_a_long_chain_is_read() -> None:
    chain = [SOURCE]
    for number in range(3000):
        step = ops.FileAction(0, -1, 0, mkdir=ops.FileActionMkDir(f"/{number}", 0o755, timestamp=-1))
        chain.append(ops.Op(inputs=[ops.Input(digest_of(chain[-1].encode()))], file=ops.FileOp([step])))
    assert len(llb_read.definition(defined(*reversed(chain), result=0)).graph) == 3001


def test_nothing_is_an_empty_file_system() -> None:
    assert llb_read.definition(ops.Definition()).edge is None


def _exec(**changes: object) -> ops.Op:
    made = ops.ExecOp(ops.Meta(args=["true"]), [ROOT])
    for name, value in changes.items():
        setattr(made, name, value)
    return ops.Op(inputs=[ops.Input(FROM)], exec=made)


def _removing(output: int) -> ops.Op:
    return ops.Op(inputs=[ops.Input(FROM)], file=ops.FileOp([ops.FileAction(0, -1, output, rm=ops.FileActionRm("/a"))]))


@pytest.mark.parametrize(
    "op",
    [
        ops.Op(inputs=[ops.Input(FROM)]),
        ops.Op(inputs=[ops.Input("sha256:none")], merge=ops.MergeOp()),
        ops.Op(inputs=[ops.Input(FROM, -1)], merge=ops.MergeOp([ops.InputIndex(0)])),
        ops.Op(inputs=[ops.Input(FROM)], merge=ops.MergeOp([ops.InputIndex(1)])),
        ops.Op(inputs=[ops.Input(FROM)], diff=ops.DiffOp(ops.InputIndex(0), ops.InputIndex(9))),
        ops.Op(inputs=[ops.Input(FROM)], file=ops.FileOp([ops.FileAction(0, -1, 0)])),
        ops.Op(inputs=[ops.Input(FROM)], file=ops.FileOp([ops.FileAction(1, -1, 0, rm=ops.FileActionRm("/"))])),
        _exec(meta=None),
        _exec(mounts=[]),
        _exec(network=9),
        _exec(meta=ops.Meta(args=["a\0b"])),
        _exec(mounts=[ROOT, ops.Mount(input=-1, dest="/x\0")]),
        ops.Op(source=ops.SourceOp("docker-image://x", {"a": "\0"})),
        ops.Op(source=ops.SourceOp("git://x/" + "../" * 6000)),
        _exec(mounts=[ROOT, ops.Mount(input=-1, dest="/x", mount_type=9)]),
        _exec(mounts=[ROOT, ops.Mount(input=4, dest="/x")]),
        _exec(mounts=[ROOT, ops.Mount(input=-1, dest="/x", output=2)]),
        _exec(mounts=[ops.Mount(input=0, dest="/", output=2**31 - 1)]),
        _exec(mounts=[ops.Mount(input=0, dest="/", output=-5)]),
        _exec(mounts=[ops.Mount(input=0, dest="/", output=-1)]),
        _removing(output=2**31 - 1),
        _removing(output=-5),
        _removing(output=-1),
        ops.Op(inputs=[ops.Input(FROM, 1)], merge=ops.MergeOp([ops.InputIndex(0)])),
        ops.Op(inputs=[ops.Input(FROM, 2**31 - 1)], merge=ops.MergeOp([ops.InputIndex(0)])),
        _exec(mounts=[ROOT, ops.Mount(input=-1, dest="/x", mount_type=3, cache_opt=ops.CacheOpt("x", 7))]),
    ],
)
def test_what_cannot_be_right_is_refused(op: ops.Op) -> None:
    with pytest.raises(InvalidParameter):
        llb_read.definition(defined(SOURCE, op))


@pytest.mark.parametrize(
    "op",
    [
        _exec(cdi_devices=[ops.CDIDevice("gpu")]),
        ops.Op(inputs=[ops.Input(FROM)], passthrough=ops.PassthroughOp("x")),
        ops.Op(inputs=[ops.Input(FROM)], build=ops.BuildOp(-1, {}, defined(SOURCE).encode())),
    ],
)
def test_what_is_not_built_yet_is_said(op: ops.Op) -> None:
    with pytest.raises(NotImplementedYet):
        llb_read.definition(defined(SOURCE, op))


def test_a_result_that_is_not_there_is_refused() -> None:
    last = ops.Op(inputs=[ops.Input("sha256:none")]).encode()
    with pytest.raises(InvalidParameter, match="sha256:none"):
        llb_read.definition(ops.Definition(definition=[SOURCE.encode(), last]))
    with pytest.raises(InvalidParameter):
        llb_read.definition(ops.Definition(definition=[SOURCE.encode()]))


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_bytes_that_are_no_operations_are_refused(data: list[bytes]) -> None:
    with suppress(HuskError):
        llb_read.definition(ops.Definition(definition=data))


def test_what_doubles_with_each_operation_stays_small() -> None:
    """Each merges the one before with itself: 30 of them once had names of gigabytes."""
    several = [SOURCE]
    for _ in range(60):
        before = ops.Input(digest_of(several[-1].encode()))
        merge = ops.MergeOp([ops.InputIndex(0), ops.InputIndex(1)])
        several.append(ops.Op(inputs=[before, before], merge=merge))
    read = llb_read.definition(defined(*several))
    assert len(read.graph) == 61
    assert sum(len(vertex.name) for vertex in read.graph) < 200_000


def test_there_are_not_too_many_inputs() -> None:
    merge = ops.MergeOp([ops.InputIndex(number) for number in range(3)])
    with pytest.raises(InvalidParameter, match="more than 2 inputs"):
        llb_read.definition(
            defined(SOURCE, ops.Op(inputs=[ops.Input(FROM)] * 3, merge=merge)), ReadLimits(graph=GraphLimits(inputs=2))
        )


@pytest.mark.parametrize(("limit", "count"), [("values_of_one", 100), ("values", 150)])
def test_there_are_not_too_many_values(limit: str, count: int) -> None:
    """Empty ones take two bytes each here, and much more in a graph."""
    process = ops.ExecOp(meta=ops.Meta(args=["x"] * count), mounts=[ops.Mount(dest="/", output=0)])
    step = ops.Op(inputs=[ops.Input(FROM)], exec=process)
    assert len(llb_read.definition(defined(SOURCE, step)).graph) == 2
    with pytest.raises(InvalidParameter, match="values at most"):
        llb_read.definition(defined(SOURCE, step), ReadLimits(**{limit: 100}))  # type: ignore[arg-type]
