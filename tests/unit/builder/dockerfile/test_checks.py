import asyncio

import pytest

from husk.builder.dockerfile.checks import CheckOptions, Checks, parse_options
from husk.builder.dockerfile.convert import convert
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.options import Options
from husk.builder.dockerfile.rules import RULES, Span, Warning
from husk.registry.manifest import Platform
from husk.text.dockerignore import Ignore
from tests.unit.builder.dockerfile.building import Images

AMD64 = Platform("amd64", "linux")


def warnings(text, **options):
    options = {"platform": AMD64, "build_platform": AMD64, **options}
    return asyncio.run(convert(text, Options(**options), Images())).warnings


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("FROM busybox\nrun x\nRUN y", "ConsistentInstructionCasing", 2),
        ("FROM busybox\nRun x", "ConsistentInstructionCasing", 2),
        ("from busybox\nrun x\nRUN y", "ConsistentInstructionCasing", 3),
        ("FROM busybox AS a\nFROM busybox AS a", "DuplicateStageName", 2),
        ("FROM busybox\nEXPOSE 80:80", "ExposeInvalidFormat", 2),
        ("FROM busybox\nEXPOSE 80/TCP", "ExposeProtoCasing", 2),
        ("FROM busybox as a", "FromAsCasing", 1),
        ("from busybox AS a", "FromAsCasing", 1),
        ("FROM --platform=linux/amd64 busybox AS a", "FromPlatformFlagConstDisallowed", 1),
        ("ARG T\nFROM busybox$T", "", 0),
        ("ARG T\nFROM busybox AS a\nFROM $T", "InvalidDefaultArgInFrom", 3),
        ("FROM busybox\nCMD x", "JSONArgsRecommended", 2),
        ("FROM busybox\nENTRYPOINT x", "JSONArgsRecommended", 2),
        ("FROM busybox\nENV a b", "LegacyKeyValueFormat", 2),
        ("FROM busybox\nLABEL a b", "LegacyKeyValueFormat", 2),
        ("FROM busybox\nMAINTAINER x", "MaintainerDeprecated", 2),
        ('FROM busybox\nCMD ["x"]\nCMD ["y"]', "MultipleInstructionsDisallowed", 2),
        ("FROM busybox\nRUN x \\\n\n y", "NoEmptyContinuation", 4),
        ("FROM --platform=$TARGETPLATFORM busybox", "RedundantTargetPlatform", 1),
        ("FROM busybox AS context", "ReservedStageName", 1),
        ("FROM busybox\nARG API_KEY", "SecretsUsedInArgOrEnv", 2),
        ("FROM busybox\nENV db_password=x", "SecretsUsedInArgOrEnv", 2),
        ("FROM busybox\nENV PUBLIC_KEY=x KEY_FILE=y MONKEY=z", "", 0),
        ("FROM busybox AS A", "StageNameCasing", 1),
        ("FROM busybox${X}", "UndefinedArgInFrom", 1),
        ("FROM busybox\nCOPY $X/a /", "UndefinedVar", 2),
        ("FROM busybox\nARG X\nCOPY $X/a /", "", 0),
        ("FROM busybox\nWORKDIR a", "WorkdirRelativePath", 2),
        ("FROM busybox\nWORKDIR /a\nWORKDIR b", "", 0),
        ("# check=skip=JSONArgsRecommended\nFROM busybox\nCMD x", "", 0),
        ("# check=skip=all\nFROM busybox\nCMD x", "", 0),
        ("FROM busybox\n# check=skip=JSONArgsRecommended\nCMD x", "", 0),
        ("# check=experimental=all\n# other\nFROM busybox AS a", "InvalidDefinitionDescription", 3),
        ("# other\nFROM busybox AS a", "", 0),
        ('FROM busybox\nSHELL ["x"]\nCMD x', "", 0),
    ],
)
def test_a_rule(text, rule, line):
    found = warnings(text, build_args={"T": "busybox"} if "$T" in text and line else {})
    assert [(warning.rule, warning.span.start) for warning in found] == ([(rule, line)] if rule else [])


def test_the_platform_of_a_base():
    arm = Platform("arm64", "linux")
    assert warnings("FROM busybox", platform=arm) == []


def test_files_that_are_not_there():
    found = warnings("FROM busybox\nCOPY a b /c", ignore=Ignore(["a"]), check="experimental=all")
    assert [(warning.rule, warning.message) for warning in found] == [
        ("CopyIgnoredFile", 'Attempting to Copy file "a" that is excluded by .dockerignore')
    ]
    assert warnings("FROM busybox\nCOPY a b /c", ignore=Ignore(["a", "!x"]), check="experimental=all") == []


def test_undefined_variables_have_a_hint():
    (found,) = warnings("FROM busybox\nENV NAME=x\nENV y=$NAMF")
    assert found.message == "Usage of undefined variable '$NAMF' (did you mean $NAME?)"


def test_warnings_can_be_errors():
    with pytest.raises(DockerfileError, match="for rules: JSONArgsRecommended, MaintainerDeprecated"):
        warnings("# check=error=true\nFROM busybox\nCMD x\nMAINTAINER x")


def test_rules_have_pages():
    assert Warning("JSONArgsRecommended", "", Span(1, 1)).url.endswith("/rule/json-args-recommended/")
    assert Warning("FromAsCasing", "", Span(1, 1)).url.endswith("/rule/from-as-casing/")
    assert all(Warning(rule, "", Span(1, 1)).description for rule in RULES)


def test_options():
    assert parse_options("skip=A, B;error=1;experimental=C") == CheckOptions(
        skip=frozenset("AB"), experimental=frozenset("C"), as_error=True
    )
    for text in ("skip", "x=y", "error=maybe"):
        with pytest.raises(DockerfileError):
            parse_options(text)


def test_a_file_is_warned_of_a_thousand_times_at_most():
    text = "FROM busybox\n" + "\n".join(f"ENV a $b{n}" for n in range(2000))
    found = warnings(text)
    assert len(found) == len(set(found)) == 1000
    (long,) = warnings("FROM busybox\nLABEL a=$" + "b" * 1_000_000)
    assert len(long.message) < 5000


def test_a_variable_that_must_be_given_is_nothing_to_be_warned_of():
    text = "ARG FOO\nARG BAR=${FOO:?error}\nFROM busybox${FOO:?error}\nARG BAR\nRUN echo $BAR\n"
    assert warnings(text.replace("busybox${FOO:?error}", "busybox"), build_args={"FOO": "x"}) == []
    assert warnings(text.replace("busybox${FOO:?error}", "${FOO:?error}"), build_args={"FOO": "busybox"}) == []


SAID_BY_DOCKERD = """\
3 StageNameCasing: Stage name 'Build' should be lowercase
17 ConsistentInstructionCasing: Command 'entrypoint' should match the case of the command majority (uppercase)
18 InvalidDefaultArgInFrom: Default value for ARG ${IMAGE} results in empty or invalid base image name
4 LegacyKeyValueFormat: "ENV key=value" should be used instead of legacy "ENV key value" format
5 SecretsUsedInArgOrEnv: Do not use ARG or ENV instructions for sensitive data (ENV "SECRET")
6 SecretsUsedInArgOrEnv: Do not use ARG or ENV instructions for sensitive data (ARG "PASSWORD")
7 LegacyKeyValueFormat: "LABEL key=value" should be used instead of legacy "LABEL key value" format
8 ExposeProtoCasing: Defined protocol '80/TCP' in EXPOSE instruction should be lowercase
9 ExposeInvalidFormat: EXPOSE instruction should not define an IP address or host-port mapping, found '127.0.0.1:80:80'
10 WorkdirRelativePath: Relative workdir "rel" can have unexpected results if the base image changes
14 UndefinedVar: Usage of undefined variable '$NAMF' (did you mean $NAME?)
14 UndefinedVar: Usage of undefined variable '$NEVER'
14 UndefinedVar: Usage of undefined variable '$PATHH' (did you mean $PATH?)
15 UndefinedVar: Usage of undefined variable '$GONE'
16 JSONArgsRecommended: JSON arguments recommended for CMD to prevent unintended behavior related to OS signals
17 JSONArgsRecommended: JSON arguments recommended for entrypoint to prevent unintended behavior related to OS signals
"""


def test_the_words_are_those_that_tools_look_for():
    """As dockerd 28.5 says it (`docker buildx build --call=check,format=json`)."""
    text = """\
ARG IMAGE
ARG PLAT=linux/amd64
FROM busybox AS Build
ENV A b
ENV SECRET=x NAME=y
ARG PASSWORD
LABEL a b
EXPOSE 80/TCP
EXPOSE 127.0.0.1:80:80
WORKDIR rel
COPY c.log /
ADD c.log a.txt /x/
RUN echo $NOPE ${HOSTNAM} $NAMF
ENV X=$NAMF Y=$NEVER Z=$PATHH
COPY $GONE/a.txt /
CMD a
entrypoint foo
FROM ${IMAGE} AS named
FROM --platform=$PLAT busybox
FROM busybox AS plat
RUN true
"""
    found = warnings(text, build_args={"IMAGE": "busybox"}, target="build", ignore=Ignore(["*.log"]))
    said = [f"{warning.span.start} {warning.rule}: {warning.message}" for warning in found]
    assert sorted(said) == sorted(SAID_BY_DOCKERD.splitlines())
    # Nor is what is made of it.
    text = "ARG FOO\nARG BAR=${FOO:?error}\nARG TAG\nFROM ${BAR}\nFROM $BAR$TAG\n"
    assert warnings(text, build_args={"FOO": "busybox"}) == []
    with pytest.raises(DockerfileError, match="FOO: error") as caught:
        warnings("ARG FOO\nFROM ${FOO:?error}\n")
    assert caught.value.span == Span(2, 2)


ORDER_OF_DOCKERD = """\
18 NoEmptyContinuation
3 InvalidDefinitionDescription
5 StageNameCasing
5 InvalidDefinitionDescription
7 MaintainerDeprecated
14 InvalidDefinitionDescription
11 ReservedStageName
6 LegacyKeyValueFormat
8 ExposeProtoCasing
9 JSONArgsRecommended
9 MultipleInstructionsDisallowed
12 UndefinedVar
12 UndefinedVar
12 SecretsUsedInArgOrEnv
14 SecretsUsedInArgOrEnv
14 UndefinedVar
15 UndefinedVar
15 LegacyKeyValueFormat
"""


def test_warnings_stand_in_the_order_of_dockerd_and_end_where_the_file_cannot_go_on():
    text = """\
# check=experimental=all
# zz
ARG PASSWORD=x
# other
FROM busybox AS Un
ENV a b
MAINTAINER x
EXPOSE 80/TCP
CMD x
CMD ["y"]
FROM busybox AS context
ENV U=$none TOKEN=$none2
# dd
ARG API_KEY=$none3
ENV l $none4
RUN true \\

  y
EXPOSE $none5/TCP 70/TCP
HEALTHCHECK CMD x
HEALTHCHECK NONE
"""
    for all_stages, said in (
        (True, ORDER_OF_DOCKERD.splitlines()),
        (False, [line for line in ORDER_OF_DOCKERD.splitlines() if line[0] not in "689"]),
    ):
        checks = Checks()
        options = Options(platform=AMD64, build_platform=AMD64, all_stages=all_stages)
        with pytest.raises(DockerfileError, match="invalid"):
            asyncio.run(convert(text, options, Images(), checks=checks))
        assert [f"{warning.span.start} {warning.rule}" for warning in checks.warnings] == said


def test_a_variable_that_must_be_given_and_is_not_is_undefined():
    checks = Checks()
    with pytest.raises(DockerfileError, match="Y: no"):
        asyncio.run(
            convert(
                "FROM busybox\nENV A=${Y:?no}\n",
                Options(platform=AMD64, build_platform=AMD64),
                Images(),
                checks=checks,
            )
        )
    assert [warning.message for warning in checks.warnings] == ["Usage of undefined variable '$Y'"]
    assert warnings("FROM busybox\nARG P=TCP\nEXPOSE 80/$P 99$none\nenv a b", check="")[1].message == (
        "Defined protocol '80/TCP' in EXPOSE instruction should be lowercase"
    )
