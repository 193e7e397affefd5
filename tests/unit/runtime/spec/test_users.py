import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.runtime.spec.users import ProcessUser, resolve_user

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
# a comment

daemon:x:1:1:daemon:/usr/sbin:/bin/false
app:x:1000:1001:App:/home/app:/bin/sh
1000:x:77:78:a name that looks like a number:/:/bin/sh
broken
"""
GROUP = """\
root:x:0:
wheel:x:10:root,app
app:x:1001:
video:x:44:app
broken
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ProcessUser(0, 0, (0, 10))),
        ("root", ProcessUser(0, 0, (0, 10))),
        ("0", ProcessUser(0, 0, (0, 10))),
        ("app", ProcessUser(1000, 1001, (1001, 10, 44))),
        ("1000", ProcessUser(1000, 1001, (1001, 10, 44))),
        ("app:", ProcessUser(1000, 1001, (1001, 10, 44))),
        ("app:video", ProcessUser(1000, 44, (44,))),
        ("app:44", ProcessUser(1000, 44, (44,))),
        ("app:5000", ProcessUser(1000, 5000, (5000,))),
        (":video", ProcessUser(0, 44, (44,))),
        ("4242", ProcessUser(4242, 0, (0,), listed=False)),
        ("4242:4243", ProcessUser(4242, 4243, (4243,), listed=False)),
    ],
)
def test_names_and_numbers_resolve_as_docker_resolves_them(text: str, expected: ProcessUser) -> None:
    assert resolve_user(text, PASSWD, GROUP) == expected


def test_added_groups_come_after_the_users_own_and_only_once() -> None:
    assert resolve_user("app", PASSWD, GROUP, ["wheel", "99", "root"]) == ProcessUser(1000, 1001, (1001, 10, 44, 99, 0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nobody", "unable to find user nobody: no matching entries in passwd file"),
        ("app:nogroup", "unable to find group nogroup: no matching entries in group file"),
        ("-1", "uids and gids must be in range 0-2147483647"),
        ("2147483648", "uids and gids must be in range 0-2147483647"),
        ("²", "unable to find user ²: no matching entries in passwd file"),
    ],
)
def test_what_cannot_be_found_is_refused_in_dockers_words(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match="^" + message.replace("(", r"\(") + "$"):
        resolve_user(text, PASSWD, GROUP)


def test_an_image_without_passwd_and_group_runs_as_root_or_by_number() -> None:
    assert resolve_user("", "", "") == ProcessUser(0, 0, (0,), listed=False)
    assert resolve_user("7:8", "", "") == ProcessUser(7, 8, (8,), listed=False)


@given(st.text(), st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_any_text_either_resolves_into_the_kernels_range_or_is_refused(
    text: str, passwd: str, group: str, added: list[str]
) -> None:
    try:
        user = resolve_user(text, passwd, group, added)
    except InvalidParameter:
        return
    assert user.gid in user.additional_gids
    assert all(number >= 0 for number in (user.uid, user.gid, *user.additional_gids))


HUGE = "9" * 5000


@pytest.mark.parametrize(
    "text", ["big", f"1:{HUGE}", HUGE, "grouped", "app:big", "-1", "2147483648", "app:" + "0" * 20 + "2147483648"]
)
def test_a_number_beyond_the_range_is_refused_however_long_it_is(text: str) -> None:
    passwd = f"big:x:{HUGE}:1::/:\ngrouped:x:5:{HUGE}::/:\n{PASSWD}"
    with pytest.raises(InvalidParameter, match="uids and gids must be in range 0-2147483647"):
        resolve_user(text, passwd, f"big:x:{HUGE}:\n{GROUP}")


def test_others_entries_that_are_odd_matter_to_nobody() -> None:
    odd = f"big:x:{HUGE}:{HUGE}::/:\nindic:x:\u0663:1::/:\n"
    assert resolve_user("app", odd + PASSWD, f"big:x:{HUGE}:root\n{GROUP}") == ProcessUser(1000, 1001, (1001, 10, 44))
    assert resolve_user("00001000", odd + PASSWD, GROUP).uid == 1000
