import pytest

from husk.swarm.ca.holders import Holder, holder_of, role_of

_SUBJECT = ((("organizationName", "s"),), (("organizationalUnitName", "swarm-worker"),), (("commonName", "n"),))


def test_a_certificate_names_node_role_and_swarm() -> None:
    assert holder_of({"subject": _SUBJECT}) == Holder("n", "worker", "s")
    assert Holder("n", "manager", "s").unit == "swarm-manager"


@pytest.mark.parametrize(
    "subject",
    [
        (),
        _SUBJECT[1:],
        _SUBJECT[:2],
        (*_SUBJECT, (("commonName", "m"),)),
        (*_SUBJECT, (("organizationalUnitName", "swarm-manager"),)),
        (_SUBJECT[0], (("organizationalUnitName", "swarm-king"),), _SUBJECT[2]),
        (_SUBJECT[0], _SUBJECT[1], (("commonName", ""),)),
    ],
)
def test_any_other_is_no_nodes(subject: tuple[tuple[tuple[str, str], ...], ...]) -> None:
    """Neither one that says two things at once."""
    assert holder_of({"subject": subject}) is None
    assert holder_of({}) is None


def test_roles_are_units() -> None:
    assert [role_of(unit) for unit in ("swarm-manager", "swarm-worker", "manager", "swarm-", "")] == [
        "manager", "worker", None, None, None,
    ]  # fmt: skip
