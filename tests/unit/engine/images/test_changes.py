"""Dockerfile instructions on a configuration, as `docker commit --change` takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.engine.images.changes import apply_changes
from husk.engine.model.container_config import ContainerConfig, HealthConfig
from husk.errors import InvalidParameter
from tests.support.but import but

SECOND = 10**9


def changed(*changes: str, **fields: object) -> ContainerConfig:
    return apply_changes(ContainerConfig(**fields), list(changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ('CMD ["a", "b c"]', "cmd", ["a", "b c"]),
        ("CMD a b", "cmd", ["/bin/sh", "-c", "a b"]),
        ("cmd\techo  hi", "cmd", ["/bin/sh", "-c", "echo  hi"]),
        ("CMD [broken", "cmd", ["/bin/sh", "-c", "[broken"]),
        ("CMD []", "cmd", []),
        ('ENTRYPOINT ["/init"]', "entrypoint", ["/init"]),
        ("ENTRYPOINT []", "entrypoint", None),
        ("ENV A=1", "env", ["A=1"]),
        ("ENV A=\"x y\" B='$z' C=a\\ b", "env", ["A=x y", "B=$z", "C=a b"]),
        ("ENV A the rest of it", "env", ["A=the rest of it"]),
        ('ENV A "quoted"', "env", ["A=quoted"]),
        ("ENV A=", "env", ["A="]),
        ('LABEL a.b=1 "c d"="e=f"', "labels", {"a.b": "1", "c d": "e=f"}),
        ("EXPOSE 80 53/UDP 90-91", "exposed_ports", {"80/tcp": {}, "53/udp": {}, "90/tcp": {}, "91/tcp": {}}),
        ("USER www:data", "user", "www:data"),
        ("WORKDIR /a/../b", "working_dir", "/b"),
        ("WORKDIR //srv", "working_dir", "/srv"),
        ('VOLUME ["/a", "/b c"]', "volumes", {"/a": {}, "/b c": {}}),
        ("VOLUME /a /b", "volumes", {"/a": {}, "/b": {}}),
        ("VOLUME [/a", "volumes", {"[/a": {}}),
        ("ONBUILD RUN make", "on_build", ["RUN make"]),
        ("STOPSIGNAL SIGINT", "stop_signal", "SIGINT"),
        ("HEALTHCHECK NONE", "healthcheck", HealthConfig(test=["NONE"])),
        ("HEALTHCHECK CMD curl x", "healthcheck", HealthConfig(test=["CMD-SHELL", "curl x"])),
        (
            'HEALTHCHECK --interval=5s --retries=3 CMD ["true"]',
            "healthcheck",
            HealthConfig(test=["CMD", "true"], interval=5 * SECOND, retries=3),
        ),
        ("HEALTHCHECK CMD [oops", "healthcheck", HealthConfig(test=["CMD-SHELL", "[oops"])),
    ],
)
def test_an_instruction_does_what_it_does_in_a_dockerfile(change: str, field: str, value: object) -> None:
    assert getattr(changed(change), field) == value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("RUN make", "RUN is not a valid change command"),
        ("frob x", "frob is not a valid change command"),
        ("ENV", "ENV requires at least one argument"),
        ("ENV A", "ENV must have two arguments"),
        ("ENV A=1 B", 'Syntax error - can\'t find = in "B". Must be of the form: name=value'),
        ("ENV =1", "ENV names can not be blank"),
        ('ENV A="open', "unexpected end of statement while looking for matching double-quote"),
        ("LABEL a='open", "unexpected end of statement while looking for matching single-quote"),
        ("ENV A=${B:?no}", "unsupported modifier in substitution: ${B:?no}"),
        ("EXPOSE http", "invalid containerPort: http"),
        ("EXPOSE 2-1", "invalid containerPort: 2-1"),
        ("EXPOSE 65536", "invalid containerPort: 65536"),
        ("USER a b", "USER requires exactly one argument"),
        ("STOPSIGNAL SIGX", "invalid signal: SIGX"),
        ('VOLUME [""]', "VOLUME specified can not be an empty string"),
        ("ONBUILD FROM x", "FROM isn't allowed as an ONBUILD trigger"),
        ("ONBUILD onbuild RUN x", "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed"),
        ("HEALTHCHECK NONE x", "HEALTHCHECK NONE takes no arguments"),
        ("HEALTHCHECK CMD", "Missing command after HEALTHCHECK CMD"),
        ("HEALTHCHECK sometimes", 'Unknown type "SOMETIMES" in HEALTHCHECK (try CMD)'),
        ("HEALTHCHECK --interval=soon CMD x", 'time: invalid duration "soon"'),
        ("HEALTHCHECK --interval=5us CMD x", 'Interval "interval" cannot be less than 1ms'),
        ("HEALTHCHECK --retries=² CMD x", "--retries cannot be ²: expected a number that is not negative"),
    ],
)
def test_what_makes_no_sense_is_refused(change: str, message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        changed(change)
    assert caught.value.message == message


def test_a_variable_keeps_its_place() -> None:
    config = changed("ENV B=9 D=4", "ENV A=$B D=5", env=["A=1", "B=2", "C=3"])
    assert config.env == ["A=9", "B=9", "C=3", "D=5"]


def test_variables_take_their_values_from_the_environment() -> None:
    config = changed(
        "ENV PATH=$PATH:/opt/bin",
        "LABEL a=\"${NAME} \\$x\" b='$NAME' c=${NONE:-default} d=${NAME:+set} e=$NONE.",
        "WORKDIR $DIR/sub",
        "EXPOSE $PORT",
        env=["PATH=/bin", "NAME=n", "DIR=/srv", "PORT=80"],
    )
    assert config.env == ["PATH=/bin:/opt/bin", "NAME=n", "DIR=/srv", "PORT=80"]
    assert config.labels == {"a": "n $x", "b": "$NAME", "c": "default", "d": "set", "e": "."}
    assert (config.working_dir, config.exposed_ports) == ("/srv/sub", {"80/tcp": {}})


def test_the_shell_expands_its_own_variables() -> None:
    assert changed("CMD echo $HOME", env=["HOME=/x"]).cmd == ["/bin/sh", "-c", "echo $HOME"]


def test_a_shell_of_the_image_s_own_is_used() -> None:
    config = but(ContainerConfig(), **{"shell": ["/bin/ash", "-ec"]})
    assert apply_changes(config, ["CMD a"]).cmd == ["/bin/ash", "-ec", "a"]


def test_a_new_entrypoint_forgets_the_arguments_of_the_old() -> None:
    assert changed("ENTRYPOINT x", cmd=["old"]).cmd is None
    assert changed('CMD ["new"]', "ENTRYPOINT x", cmd=["old"]).cmd == ["new"]
    assert changed("ENTRYPOINT x", 'CMD ["new"]', cmd=["old"]).cmd == ["new"]


def test_a_relative_directory_begins_at_the_present_one() -> None:
    assert changed("WORKDIR a", "WORKDIR ../b", working_dir="/srv").working_dir == "/srv/b"


def test_a_change_may_hold_several_lines_and_comments() -> None:
    config = changed("# a comment\nENV A=1 \\\n  B=2\n\nUSER me")
    assert (config.env, config.user) == (["A=1", "B=2"], "me")


def test_the_configuration_given_stays_as_it_was() -> None:
    before = ContainerConfig(
        env=["A=1"], labels={"a": "1"}, exposed_ports={"1/tcp": {}}, volumes={"/a": {}}, on_build=["RUN x"]
    )
    apply_changes(before, ["ENV B=2", "LABEL b=2", "EXPOSE 2", "VOLUME /b", "ONBUILD RUN y"])
    assert before == ContainerConfig(
        env=["A=1"], labels={"a": "1"}, exposed_ports={"1/tcp": {}}, volumes={"/a": {}}, on_build=["RUN x"]
    )


@given(st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="\\\"'$"), min_size=1), st.text())
def test_any_text_is_kept_in_single_quotes(name: str, value: str) -> None:
    value = "".join(value.replace("'", "").replace("\\", "").splitlines())
    name = name.replace("=", "") or "n"
    assert changed(f"LABEL {name}='{value}'").labels == {name: value}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        changed("ENV " + text, "LABEL " + text, "WORKDIR " + text)
    except InvalidParameter as error:
        assert error.message
