import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.instructions import Arg, CommandLine, CopiedFiles
from husk.builder.dockerfile.lines import Pair
from husk.builder.dockerfile.parse import parse, parse_trigger
from husk.builder.dockerfile.rules import Span


def one(line):
    (instruction,) = parse(f"FROM a\n{line}").stages[0].instructions
    return instruction


def refusal(text):
    with pytest.raises(DockerfileError) as caught:
        parse(text)
    return str(caught.value)


def test_stages_and_global_arguments():
    found = parse("ARG V=1\nARG W\nFROM a:$V AS One\nRUN x\nFROM --platform=$P b\nRUN y\nRUN z")
    assert [arg.args for arg in found.global_args] == [[Arg("V", "1")], [Arg("W")]]
    first, second = found.stages
    assert (first.begin.base, first.name, len(first.instructions)) == ("a:$V", "one", 1)
    assert (second.begin.base, second.name, second.begin.platform) == ("b", "", "$P")
    assert [step.origin.code for step in second.instructions] == ["RUN y", "RUN z"]


def test_comments_describe_stages_and_arguments():
    found = parse("# V is the version\nARG V=1\n# base is where it begins\nFROM a AS base")
    assert found.global_args[0].args[0].description == "is the version"
    assert found.stages[0].begin.description == "is where it begins"


@pytest.mark.parametrize(
    ("line", "pairs"),
    [
        ("a=1", [Pair("a", "1")]),
        ("a=1 b=2", [Pair("a", "1"), Pair("b", "2")]),
        ("a='x y' b=\"$z\"", [Pair("a", "'x y'"), Pair("b", '"$z"')]),
        ("a=x\\ y", [Pair("a", "x\\ y")]),
        ("a=", [Pair("a", "")]),
        ("a=b=c", [Pair("a", "b=c")]),
        ("a b  c", [Pair("a", "b  c", legacy=True)]),
        ("a b=c", [Pair("a", "b=c", legacy=True)]),
    ],
)
def test_pairs(line, pairs):
    assert one(f"ENV {line}").pairs == pairs
    assert one(f"LABEL {line}").pairs == pairs


def test_several_arguments_in_one_line():
    assert one("ARG a b= c='d e'").args == [Arg("a"), Arg("b", ""), Arg("c", "'d e'")]


@pytest.mark.parametrize(
    ("rest", "command"),
    [
        ("echo hi", CommandLine(["echo hi"], for_shell=True)),
        ('["echo", "hi"]', CommandLine(["echo", "hi"], for_shell=False)),
        ('  [ "echo" ]', CommandLine(["echo"], for_shell=False)),
        ("[echo]", CommandLine(["[echo]"], for_shell=True)),
        ("[ -f x ] && y", CommandLine(["[ -f x ] && y"], for_shell=True)),
        ("['a']", CommandLine(["['a']"], for_shell=True)),
        ("[NaN]", CommandLine(["[NaN]"], for_shell=True)),
        ("[]", CommandLine([], for_shell=False)),
        ("", CommandLine([], for_shell=True)),
    ],
)
@pytest.mark.parametrize("keyword", ["RUN", "CMD", "ENTRYPOINT", "cmd"])
def test_commands_for_a_shell_or_as_they_are(keyword, rest, command):
    assert one(f"{keyword} {rest}").command == command


def test_a_script_in_a_heredoc():
    run = one("RUN <<EOF python3\nprint(1)\nEOF")
    assert run.command.words == ["<<EOF python3"]
    assert [heredoc.text for heredoc in run.command.heredocs] == ["print(1)\n"]


def test_copy():
    copy = one("COPY --from=b --chown=1:2 --chmod=755 --link --parents --exclude=*.o --exclude=x a b /c/")
    assert copy.files == CopiedFiles(["a", "b"], [], "/c/")
    assert (copy.source, copy.chown, copy.chmod, copy.link, copy.parents) == ("b", "1:2", "755", True, True)
    assert copy.excludes == ["*.o", "x"]
    assert one('COPY ["a b", "/c"]').files == CopiedFiles(["a b"], [], "/c")
    assert not one("COPY --link=false a b").link


def test_copy_of_texts_in_the_file():
    copy = one("COPY <<one 'x' <<-\"two\" /d/\n$a\none\n\tb\ntwo")
    assert copy.files.paths == ["'x'"]
    assert [(text.name, text.expand, text.text) for text in copy.files.heredocs] == [
        ("one", True, "$a\n"),
        ("two", False, "b\n"),
    ]


def test_add():
    add = one("ADD --checksum=sha256:1 --keep-git-dir --unpack=false https://x/y /z")
    assert (add.checksum, add.keep_git_dir, add.unpack) == ("sha256:1", True, False)
    assert one("ADD a b").unpack is None


def test_run_with_mounts():
    run = one("RUN --mount=type=cache,target=/c --mount=from=b,target=/b --network=none --security=insecure make")
    assert [mount.source for mount in run.mounts] == ["", "b"]
    assert (run.network, run.security) == ("none", "insecure")
    assert run.flags == {"mount", "network", "security"}


def test_health_checks():
    check = one(
        "HEALTHCHECK --interval=1m30s --timeout=1s --start-period=2s --start-interval=3ms --retries=4 CMD curl x"
    )
    assert check.test == ["CMD-SHELL", "curl x"]
    assert (check.interval, check.timeout, check.retries) == (90_000_000_000, 1_000_000_000, 4)
    assert (check.start_period, check.start_interval) == (2_000_000_000, 3_000_000)
    assert one('HEALTHCHECK cmd ["a"]').test == ["CMD", "a"]
    assert one("HEALTHCHECK none").test == ["NONE"]


def test_the_rest():
    assert one("WORKDIR /a b").path == "/a b"
    assert one("USER a:b").name == "a:b"
    assert one('VOLUME ["/a", "/b"]').paths == ["/a", "/b"]
    assert one("VOLUME /a /b").paths == ["/a", "/b"]
    assert one("EXPOSE 80 443/tcp $P").ports == ["$P", "443/tcp", "80"]
    assert one("STOPSIGNAL $s").signal == "$s"
    assert one('SHELL ["bash", "-c"]').words == ["bash", "-c"]
    assert one("MAINTAINER me <a@b>").name == "me <a@b>"


def test_triggers():
    assert one("onbuild  RUN echo hi").trigger == "RUN echo hi"
    trigger = one("ONBUILD COPY <<EOF /x\ntext\nEOF").trigger
    assert trigger == "COPY <<EOF /x\ntext\nEOF"
    copy = parse_trigger(trigger)
    assert isinstance(copy, types.Copy)
    assert copy.files.heredocs[0].text == "text\n"
    for text in ("FROM x", "ONBUILD RUN x", "MAINTAINER x", "RUN a\nRUN b"):
        with pytest.raises(DockerfileError):
            parse_trigger(text)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("RUNN x", "unknown instruction: RUNN (did you mean RUN?)"),
        ("wrkdir x", "unknown instruction: wrkdir (did you mean WORKDIR?)"),
        ("COPYY", "(did you mean COPY?)"),
        ("FROM", "FROM requires either one or three arguments"),
        ("FROM a b", "FROM requires either one or three arguments"),
        ("FROM a AS 1x", "invalid name for build stage"),
        ("FROM --platfrom=x a", "unknown flag: --platfrom (did you mean platform?)"),
        ("ENV", "ENV requires at least one argument"),
        ("ENV a", "ENV must have two arguments"),
        ("ENV a=1 b", 'can\'t find = in "b"'),
        ("ENV =1", "ENV names can not be blank"),
        ("ARG", "ARG requires at least one argument"),
        ("ARG =1", "ARG names can not be blank"),
        ("COPY a", "COPY requires at least two arguments"),
        ("ADD", "ADD requires at least two arguments"),
        ("COPY a <<EOF\nEOF", "COPY cannot accept a heredoc as a destination"),
        ("COPY --link=maybe a b", "expecting boolean value for flag --link"),
        ("COPY --link= a b", "missing a value on flag: --link"),
        ("COPY --from a b", "missing a value on flag: --from"),
        ("COPY --from=a --from=b c d", "duplicate flag specified: --from"),
        ("RUN [1]", "arrays must be comprised of strings only"),
        ("RUN --network=x y", "unsupported network mode"),
        ("RUN --security=x y", "unsupported security mode"),
        ("RUN --device=x y", "RUN --device is not supported"),
        ("RUN --mount=from=$x,target=/y z", "'from' doesn't support variable expansion"),
        ("WORKDIR", "WORKDIR requires exactly one argument"),
        ("USER --x a", "unknown flag: --x"),
        ("SHELL bash -c", "SHELL requires the arguments to be in JSON form"),
        ("SHELL []", "SHELL requires at least one argument"),
        ("VOLUME []", "VOLUME requires at least one argument"),
        ('VOLUME [" "]', "VOLUME specified can not be an empty string"),
        ("EXPOSE", "EXPOSE requires at least one argument"),
        ("HEALTHCHECK", "HEALTHCHECK requires at least one argument"),
        ("HEALTHCHECK NONE x", "HEALTHCHECK NONE takes no arguments"),
        ("HEALTHCHECK PING x", 'Unknown type "PING" in HEALTHCHECK'),
        ("HEALTHCHECK CMD", "Missing command after HEALTHCHECK CMD"),
        ("HEALTHCHECK CMD []", "Missing command after HEALTHCHECK CMD"),
        ("HEALTHCHECK --interval=1us CMD x", 'Interval "interval" cannot be less than 1ms'),
        ("HEALTHCHECK --interval=x CMD x", "invalid duration"),
        ("HEALTHCHECK --retries=-1 CMD x", "--retries cannot be negative"),
        ("HEALTHCHECK --retries=x CMD x", "--retries needs a number"),
        ("ONBUILD", "ONBUILD requires at least one argument"),
        ("ONBUILD ONBUILD RUN x", "Chaining ONBUILD"),
        ("ONBUILD FROM x", "FROM isn't allowed as an ONBUILD trigger"),
    ],
)
def test_refusals_say_what_and_where(line, says):
    with pytest.raises(DockerfileError) as caught:
        parse(f"FROM a\n\n{line}")
    assert says in str(caught.value)
    assert caught.value.span
    assert caught.value.span.start == 3


def test_nothing_but_arguments_stands_before_the_first_stage():
    assert "no build stage in current context" in refusal("RUN x\nFROM a")


def test_instructions_know_where_they_stand():
    assert one("RUN a \\\n b").origin.span == Span(2, 3)


words = st.text("abc $\\\"'{}[]<>=-:/\n#,", max_size=30)


@given(
    st.lists(st.tuples(st.sampled_from(["RUN", "ENV", "COPY", "ARG", "LABEL", "FROM", "CMD", "HEALTHCHECK"]), words))
)
def test_nothing_but_a_dockerfile_error_comes_out(lines):
    text = "FROM a\n" + "\n".join(f"{keyword} {rest}" for keyword, rest in lines)
    try:
        parse(text)
    except DockerfileError as error:
        assert error.span


def test_devices_are_refused_clearly():
    with pytest.raises(DockerfileError, match=r"RUN --device is not supported: this engine knows no CDI devices"):
        parse("FROM busybox\nRUN --device=vendor.com/class=gpu,required true\n")
