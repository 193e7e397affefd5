"""A graph with one of each operation, and everything that operations can say."""

from husk.builder.graph import operations as ours
from husk.builder.graph.graph import Graph, Location, SourceFile
from husk.builder.graph.operations import Edge, Operation
from husk.builder.store import file_actions
from husk.registry.manifest import Platform

LINUX = Platform("amd64", "linux", "v2")


def everything() -> tuple[Graph, Edge]:
    graph = Graph([SourceFile("Dockerfile", b"FROM x\nRUN y\n")])
    image = graph.add(Operation(ours.Source("docker-image://x", {"a": "b"}), [], LINUX), name="[1/2] FROM x")
    context = graph.add(Operation(ours.Source("local://context")), name="[internal] load build context")
    run = ours.Exec(
        process=ours.ProcessSpec(
            args=["sh", "-c", "y"],
            env=["A=b"],
            cwd="/w",
            user="u",
            hostname="h",
            extra_hosts=[("n", "1.2.3.4")],
            ulimits=[ours.StepUlimit("nofile", 1, 2)],
            cgroup_parent="p",
            proxy={"http_proxy": "p"},
            valid_exit_codes=[0, 3],
        ),
        mounts=[
            ours.ExecMount(target="/", input=0, output=0),
            ours.ExecMount(target="/c", kind=ours.CacheMount("id", "locked")),
            ours.ExecMount(target="/t", kind=ours.TmpfsMount(10)),
            ours.ExecMount(target="/s", kind=ours.SecretMount("s", 1, 2, 0o400, True)),
            ours.ExecMount(target="/a", kind=ours.SshMount("default", 1, 2, 0o600, True)),
            ours.ExecMount(target="/b", input=1, selector="/x", read_only=True),
        ],
        network="none",
        insecure=True,
        secret_env=[ours.SecretVariable("s", "S", True)],
    )
    ran = graph.add(
        Operation(run, [image, context], LINUX),
        name="[2/2] RUN y",
        description={"k": "v"},
        ignore_cache=True,
        locations=[Location(0, 2, 2)],
    )
    owner = file_actions.Owner(name="u", input=0)
    files = ours.Files(
        [
            file_actions.FileAction(
                action=file_actions.Copy(
                    source="/a",
                    destination="/b",
                    user=owner,
                    group=file_actions.Owner(number=0),
                    mode=0,
                    symbolic_mode="u+x",
                    follow_links=True,
                    contents_only=True,
                    unpack=True,
                    make_parents=True,
                    wildcards=True,
                    may_match_nothing=True,
                    timestamp=0,
                    include=["i"],
                    exclude=["e"],
                    replace=True,
                    required=["r"],
                ),
                input=0,
                second_input=1,
            ),
            file_actions.FileAction(action=file_actions.Copy(source="/a", destination="/b"), input=2, second_input=1),
            file_actions.FileAction(
                action=file_actions.MakeFile(path="/f", mode=0o600, data=b"d", user=owner, timestamp=5), input=3
            ),
            file_actions.FileAction(
                action=file_actions.MakeDirectory(path="/d", mode=0o700, make_parents=True), input=4
            ),
            file_actions.FileAction(action=file_actions.Symlink(target="/t", path="/l"), input=5),
            file_actions.FileAction(
                action=file_actions.Remove(path="/r", may_be_missing=True, wildcards=True), input=6, output=0
            ),
        ]
    )
    copied = graph.add(Operation(files, [ran, context]), name="COPY")
    changed = graph.add(Operation(ours.Diff(0, 1), [image, copied]), name="diff")
    added = graph.add(Operation(ours.Diff(file_actions.NONE, 0), [copied]), name="all")
    merged = graph.add(Operation(ours.Merge(), [image, changed, added]), name="merge")
    return graph, graph.add(Operation(ours.NestedBuild(0, {"in": 0}, {"k": "v"}), [merged]), name="build")
