"""Image names mean what they mean to Docker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import HuskError, InvalidParameter
from husk.registry.reference import Reference, parse, validate_digest, validate_domain, validate_tag

SHA = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "full", "familiar"),
    [
        ("busybox", "docker.io/library/busybox", "busybox"),
        ("busybox:1.36", "docker.io/library/busybox:1.36", "busybox:1.36"),
        ("library/busybox", "docker.io/library/busybox", "busybox"),
        ("docker.io/busybox", "docker.io/library/busybox", "busybox"),
        ("index.docker.io/busybox", "docker.io/library/busybox", "busybox"),
        ("index.docker.io/team/app", "docker.io/team/app", "team/app"),
        ("team/app", "docker.io/team/app", "team/app"),
        ("library/team/app", "docker.io/library/team/app", "library/team/app"),
        ("localhost/app", "localhost/app", "localhost/app"),
        ("localhost:5000/x", "localhost:5000/x", "localhost:5000/x"),
        ("localhost", "docker.io/library/localhost", "localhost"),
        ("127.0.0.1:5000/team/app:v1", "127.0.0.1:5000/team/app:v1", "127.0.0.1:5000/team/app:v1"),
        ("[::1]:5000/app", "[::1]:5000/app", "[::1]:5000/app"),
        ("UPPER/app", "UPPER/app", "UPPER/app"),
        ("ghcr.io/a/b/c:t", "ghcr.io/a/b/c:t", "ghcr.io/a/b/c:t"),
        (f"busybox@{SHA}", f"docker.io/library/busybox@{SHA}", f"busybox@{SHA}"),
        (f"busybox:1@{SHA}", f"docker.io/library/busybox:1@{SHA}", f"busybox:1@{SHA}"),
        ("a__b/c--d.e", "docker.io/a__b/c--d.e", "a__b/c--d.e"),
        ("app:5000", "docker.io/library/app:5000", "app:5000"),
    ],
)
def test_a_name_has_one_full_and_one_familiar_form(text: str, full: str, familiar: str) -> None:
    assert str(parse(text)) == full
    assert parse(text).familiar == familiar


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo", "invalid reference format: repository name (library/Foo) must be lowercase"),
        ("localhost:5000/Foo:1", "invalid reference format: repository name (Foo) must be lowercase"),
        ("", "invalid reference format"),
        (":tag", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("a/", "invalid reference format"),
        ("/a", "invalid reference format"),
        ("a..b", "invalid reference format"),
        ("a___b", "invalid reference format"),
        ("-a", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("a\n", "invalid reference format"),
        ("a:", "invalid reference format"),
        ("a:b:c", "invalid reference format"),
        ("a:.b", "invalid reference format"),
        ("a:" + "t" * 129, "invalid reference format"),
        ("a@", "invalid reference format"),
        ("a@sha256:123", "invalid reference format"),
        ("ex_ample.com/a", "invalid reference format"),
        ("[:::]/a", "invalid reference format"),
        ("../../etc/passwd", "invalid reference format"),
        ("http://example.com/a", "invalid reference format"),
        ("a@sha256:" + "0" * 40, "invalid checksum digest length"),
        ("a@sha512:" + "0" * 128, "unsupported digest algorithm: sha512 (only sha256 is)"),
        ("a" * 256, "repository name must not be more than 255 characters"),
        ("a/" * 1_000_000, "repository name must not be more than 255 characters"),
        ("0" * 64, f"invalid repository name ({'0' * 64}), cannot specify 64-byte hexadecimal strings"),
    ],
)
def test_a_bad_name_is_refused_in_dockers_words(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        parse(text)
    assert refused.value.message == message


def test_tag_and_digest_replace_each_other() -> None:
    ref = parse("busybox:1")
    assert ref.with_tag("2") == Reference("docker.io", "library/busybox", tag="2")
    assert ref.with_digest(SHA) == Reference("docker.io", "library/busybox", digest=SHA)
    assert ref.with_digest(SHA).with_tag("3").familiar == "busybox:3"
    assert ref.with_tag_or_digest(SHA).familiar == f"busybox@{SHA}"
    assert ref.with_tag_or_digest("4").familiar == "busybox:4"


def test_only_a_bare_name_gets_the_default_tag() -> None:
    assert parse("busybox").tagged().familiar == "busybox:latest"
    assert parse("busybox:1").tagged().familiar == "busybox:1"
    assert parse(f"busybox@{SHA}").tagged().familiar == f"busybox@{SHA}"


@pytest.mark.parametrize("tag", ["", " ", "a b", "-a", ".a", "a/b", "a:b", "sha256:123", "t" * 129, "é", "a\n"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid tag format"):
        validate_tag(tag)


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:" + "0" * 63, "sha256:" + "G" * 64, SHA.upper(), "../" + SHA]
)
def test_what_is_no_digest_is_refused(digest: str) -> None:
    with pytest.raises(InvalidParameter):
        validate_digest(digest)


@pytest.mark.parametrize("domain", ["", "a b", "host/path", "host:port", "user@host", "-a", "[::1"])
def test_what_is_no_registry_address_is_refused(domain: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid registry address"):
        validate_domain(domain)


@given(
    st.from_regex(
        r"([a-z0-9.:-]{1,12}/)?[a-zA-Z0-9_./-]{1,20}(:[a-zA-Z0-9_.-]{1,10})?(@sha256:[0-9a-f]{64})?", fullmatch=True
    )
)
def test_every_accepted_name_survives_being_written_and_read_again(text: str) -> None:
    try:
        ref = parse(text)
    except HuskError:
        return
    assert parse(str(ref)) == ref
    assert parse(ref.familiar) == ref


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_and_nothing_strange_gets_through(text: str) -> None:
    try:
        ref = parse(text)
    except InvalidParameter:
        return
    assert ".." not in ref.path
    assert str(ref).isascii() and str(ref).isprintable() and " " not in str(ref)
