from husk.builder.dockerfile.parse import parse
from husk.builder.dockerfile.variables import predefined, proxies, with_global_args
from husk.builder.dockerfile.words import DEFAULT
from husk.registry.manifest import Platform

HERE, THERE = Platform("amd64", "linux"), Platform("arm", "linux", "v7")


def test_platforms_are_predefined():
    known = predefined(THERE, HERE, {"TARGETARCH": "mine"}, "")
    assert known["BUILDPLATFORM"] == "linux/amd64"
    assert known["TARGETPLATFORM"] == "linux/arm/v7"
    assert known["TARGETVARIANT"] == "v7"
    assert known["TARGETARCH"] == "mine"
    assert known["TARGETSTAGE"] == "default"


def test_global_arguments_build_on_each_other():
    args = parse("ARG A=1 B=$A$A\nARG C\nARG D=${C:-$B}\nFROM x").global_args
    assert with_global_args({}, args, {}, DEFAULT) == {"A": "1", "B": "11", "D": "11"}
    assert with_global_args({}, args, {"A": "2", "C": "c", "X": "no"}, DEFAULT) == {
        "A": "2",
        "B": "22",
        "C": "c",
        "D": "c",
    }


def test_proxies_by_any_case():
    assert proxies({"HTTP_PROXY": "a", "no_proxy": "b", "OTHER": "c"}) == {"http_proxy": "a", "no_proxy": "b"}
