"""Privileges of a service as security options of its containers."""

import base64

import pytest

from husk.errors import InvalidParameter, NotImplementedYet
from husk.swarm.model.services import AppArmorMode, Privileges, SeccompMode, SELinuxContext
from husk.swarm.spec import privileges

PROFILE = '{"defaultAction": "SCMP_ACT_ALLOW"}'


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_each_has_its_word():
    wanted = Privileges(
        no_new_privileges=True,
        seccomp=SeccompMode(mode="custom", profile=encoded(PROFILE)),
        app_armor=AppArmorMode(mode="disabled"),
        se_linux_context=SELinuxContext(user="u", level="s0:c1"),
    )
    privileges.check(wanted)
    assert privileges.options(wanted) == [
        "no-new-privileges", f"seccomp={PROFILE}", "apparmor=unconfined", "label=user:u", "label=level:s0:c1",
    ]  # fmt: skip


def test_what_is_usual_needs_no_word():
    usual = Privileges(seccomp=SeccompMode(mode="default"), app_armor=AppArmorMode(mode="default"))
    privileges.check(usual)
    privileges.check(None)
    assert privileges.options(usual) == []
    assert privileges.options(Privileges(seccomp=SeccompMode(mode="unconfined"))) == ["seccomp=unconfined"]
    assert privileges.options(Privileges(se_linux_context=SELinuxContext(disable=True))) == ["label=disable"]


@pytest.mark.parametrize(
    "wanted",
    [
        Privileges(seccomp=SeccompMode(mode="strict")),
        Privileges(seccomp=SeccompMode(mode="custom")),
        Privileges(seccomp=SeccompMode(mode="unconfined", profile=encoded(PROFILE))),
        Privileges(seccomp=SeccompMode(mode="custom", profile="not base64")),
        Privileges(seccomp=SeccompMode(mode="custom", profile=encoded("not a profile"))),
        Privileges(app_armor=AppArmorMode(mode="complain")),
    ],
)
def test_what_cannot_be_is_refused(wanted: Privileges):
    with pytest.raises(InvalidParameter):
        privileges.check(wanted)


def test_credential_specs_are_for_others():
    with pytest.raises(NotImplementedYet):
        privileges.check(Privileges(credential_spec={"File": "x"}))
