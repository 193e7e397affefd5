"""The words of --security-opt."""

import pytest

from husk.engine.containers.config.security import SecurityOptions, check, parse
from husk.errors import InvalidParameter


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ([], SecurityOptions()),
        (["no-new-privileges"], SecurityOptions(no_new_privileges=True)),
        (["no-new-privileges:true"], SecurityOptions(no_new_privileges=True)),
        (["no-new-privileges=1", "no-new-privileges:false"], SecurityOptions()),
        (["seccomp:unconfined"], SecurityOptions(seccomp="unconfined")),
        (["seccomp=builtin"], SecurityOptions()),
        (['seccomp={"a": "b=c:d"}'], SecurityOptions(seccomp='{"a": "b=c:d"}')),
        (["apparmor=p", "label=type:t", "label:user:u"], SecurityOptions(apparmor="p", labels=("type:t", "user:u"))),
        (["disable"], SecurityOptions(labels=("disable",))),
        (["writable-cgroups=true"], SecurityOptions(writable_cgroups=True)),
    ],
)
def test_words(words: list[str], meaning: SecurityOptions) -> None:
    assert parse(words) == meaning


@pytest.mark.parametrize("word", ["seccomp", "foo=bar", "systempaths=unconfined", "no-new-privileges=maybe"])
def test_no_words(word: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^invalid --security-opt [12]: "):
        parse([word])


def test_a_profile_of_seccomp_has_a_limit() -> None:
    check(['seccomp={"defaultAction": "SCMP_ACT_ALLOW"}' + " " * 100_000])
    with pytest.raises(InvalidParameter, match="262144 is the most"):
        check(['seccomp={"defaultAction": "SCMP_ACT_ALLOW"}' + " " * 300_000])
