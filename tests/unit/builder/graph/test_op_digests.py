"""Keys of operations. The digests are those that BuildKit 0.25 (dockerd 28.5) wrote into caches of its own."""

import pytest

from husk.builder.graph.op_digests import InputKey, op_key, record_digest, source_digest
from husk.builder.graph.operations import (
    CacheMount,
    Diff,
    Edge,
    Exec,
    ExecMount,
    Files,
    Merge,
    Operation,
    ProcessSpec,
    SecretMount,
    Source,
    SshMount,
    TmpfsMount,
)
from husk.builder.store.file_actions import (
    NONE,
    Copy,
    FileAction,
    MakeDirectory,
    MakeFile,
    Owner,
    Remove,
    Selection,
    Symlink,
)
from husk.registry.manifest import Platform
from tests.support.work import lines_run

HERE = Platform("amd64", "linux")
ROOT = ExecMount(target="/", input=0, output=0)
WHOLE = "sha256:8a5edab282632443219e051e4ade2d1d5bbc671c781051bf1437897cbdfea0f1"  # of the path /


def inputs(count):
    return [Edge(f"sha256:{number}") for number in range(count)]


def run(script, *mounts, count=1, **more):
    process = ProcessSpec(args=["/bin/sh", "-c", script], remove_stubs=True, **more)
    return Operation(Exec(process=process, mounts=[ROOT, *mounts], network="none"), inputs(count), HERE)


def copy(source, destination, *, first=0, second=1, output=0, count=2, **more):
    """As a Dockerfile makes it."""
    action = Copy(
        source=source,
        destination=destination,
        follow_links=True,
        contents_only=True,
        make_parents=True,
        wildcards=True,
        may_match_nothing=True,
        **more,
    )
    return FileAction(action=action, input=first, second_input=second, output=output)


def files(*actions, count=2):
    return Operation(Files(list(actions)), inputs(count))


IN_WORK = {"env": ["PATH=/bin", "FOO=bar"], "cwd": "/work"}
CACHE = ExecMount(target="/c", kind=CacheMount("//c"))
BOUND = ExecMount(target="/d", input=1, selector="/dir", read_only=True)
OWNED = {"user": Owner(number=0), "group": Owner(number=0), "mode": 0o644}


@pytest.mark.parametrize(
    ("operation", "digest"),
    [
        pytest.param(
            files(FileAction(action=MakeDirectory(path="/work", mode=0o755, make_parents=True), input=0, output=0)),
            "759e89c7961b764dd40c0bcd68607b71f414c3db016f448be9b096abbf93232d",
            id="WORKDIR",
        ),
        pytest.param(
            run('echo "one < two & $FOO" > /one', **IN_WORK),
            "980bb4d36f162f56c8bbbb63f6f9a0385285b239f24de8ee61e5af681a55f107",
            id="RUN",
        ),
        pytest.param(
            run("cat /d/b.txt > /two", CACHE, BOUND, count=2, **IN_WORK),
            "19161d6d6deb1dd09a26ba6ce92cebd87f36371b079e273dd422deffd09aedc9",
            id="RUN --mount",
        ),
        pytest.param(
            files(copy("/a.txt", "/x/")),
            "02699362ec0cb97f96a74e22561efa65cc90f04331c3244db92fc6906809cad3",
            id="COPY",
        ),
        pytest.param(
            files(copy("/dir", "/work/dir2/")),
            "eecb9925720b65d0a29569717eddef2403c8e2fd6e37e6fd378ba894ffb9d56d",
            id="COPY of a directory",
        ),
        pytest.param(
            files(copy("/one", "/out/", output=NONE), copy("/two", "/out/", first=2)),
            "142675dde5c6fe08b1859b967951010a1a07f5a984562d691245e48f5ceb5ebc",
            id="COPY of two",
        ),
        pytest.param(
            files(copy("/*.txt", "/txt/", **OWNED)),
            "a186e5ab297ff8d3770180b8987821f6e1c333e8b316d2d2d4177a313c40cd28",
            id="COPY --chown --chmod",
        ),
        pytest.param(
            files(copy("/a.txt", "/linked/", first=NONE, second=0), count=1),
            "d6cddbd10b9df44c929cf3020d4b8f0a3eedb58009559d46e97e72a3be0954cb",
            id="COPY --link",
        ),
        pytest.param(
            Operation(Merge(), inputs(2)),
            "5dbfbafede47210a7bd7363461bc885ec7310febe761daffdf666bfdae5970ff",
            id="the link",
        ),
        pytest.param(
            files(copy("/", "/all/", unpack=True)),
            "435978790f3bf2685347b43e5b354b22d51a2996f331c6d4a64ad75c0e4afd11",
            id="ADD",
        ),
        pytest.param(
            run("echo end > /end", env=["PATH=/bin"]),
            "2344776234dd669c9f7fca3ce489301af4fd238b1955edb7e22748a5f62a059e",
            id="RUN in the root",
        ),
    ],
)
def test_the_keys_are_buildkits(operation, digest):
    key = op_key(operation)
    assert key
    assert record_digest(key.digest, 0) == f"sha256:{digest}"


def test_a_source_has_a_key_of_its_own():
    assert op_key(Operation(Source("docker-image://x"))) is None
    assert source_digest("a") != source_digest("b")


def test_what_of_an_input_counts():
    key = op_key(run("make", CACHE, BOUND, count=2))
    assert key
    root, bound = key.inputs
    assert root == InputKey(WHOLE)
    assert bound.files == [Selection(path="/dir", follow_links=True)]
    copied = op_key(files(copy("/a/b", "/"), copy("/a", "/", first=2)))
    assert copied
    assert copied.inputs[0] == InputKey()
    # What lies below another path counts with that.
    assert copied.inputs[1].files == [Selection(path="/a", follow_links=True)]


def test_a_mount_of_all_of_an_input_counts_with_all_of_it():
    whole = ExecMount(target="/d", input=1, read_only=True)
    key = op_key(run("make", whole, count=2))
    assert key
    assert key.inputs[1].files == [Selection(path="/")]
    written = op_key(run("make", ExecMount(target="/d", input=1, selector="/x", output=1), count=2))
    assert written
    assert written.inputs[1].files is None


def test_names_of_owners_count_with_the_files_that_have_them():
    named = {"user": Owner(name="me", input=1), "group": Owner(name="us", input=1)}
    key = op_key(files(copy("/a", "/", second=NONE, **named)))
    assert key
    assert key.inputs[1].files is not None
    assert [one.path for one in key.inputs[1].files] == ["/etc/group", "/etc/passwd"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (run("x", extra_hosts=[("a", "1.1.1.1")]), run("x", extra_hosts=[("a", "2.2.2.2")]), True),
        (run("x", proxy={"http_proxy": "p"}), run("x"), True),
        (
            run("x", ExecMount(target="/d", kind=CacheMount("a"))),
            run("x", ExecMount(target="/d", kind=CacheMount("b"))),
            True,
        ),
        (
            run("x", ExecMount(target="/d", kind=CacheMount("/d"))),
            run("x", ExecMount(target="/d", kind=CacheMount("b"))),
            False,
        ),
        (
            run("x", ExecMount(target="/d", kind=TmpfsMount(1))),
            run("x", ExecMount(target="/d", kind=TmpfsMount(2))),
            False,
        ),
        (
            run("x", ExecMount(target="/d", kind=SecretMount("a"))),
            run("x", ExecMount(target="/d", kind=SshMount("a"))),
            False,
        ),
        (run("x", user="me"), run("x"), False),
        (run("x\u2028"), run("x"), False),
        (Operation(Diff(0, 1), inputs(2)), Operation(Diff(1, 0), inputs(2)), False),
        (
            files(FileAction(action=MakeFile(path="/a", mode=0o644, data=b"x"), input=0, output=0)),
            files(FileAction(action=MakeFile(path="/a", mode=0o644, data=b"y"), input=0, output=0)),
            False,
        ),
        (
            files(FileAction(action=Symlink(target="a", path="b"), input=0, output=0)),
            files(FileAction(action=Remove(path="b"), input=0, output=0)),
            False,
        ),
    ],
)
def test_what_makes_another_key(one, other, same):
    first, second = op_key(one), op_key(other)
    assert first and second
    assert (first.digest == second.digest) is same


def test_many_mounts_are_gone_through_once():
    def work(count):
        mounts = [ExecMount(target=f"/{n}", input=n, selector=f"/{n}", read_only=True) for n in range(count)]
        many = [ExecMount(target=f"/m{n}", input=0, selector=f"/{n}/x", read_only=True) for n in range(count)]
        body = Exec(process=ProcessSpec(args=["x"]), mounts=[*mounts, *many])
        return lines_run(lambda: op_key(Operation(body, inputs(count), HERE)))

    assert work(400) < 5 * work(100)
