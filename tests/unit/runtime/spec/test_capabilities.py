import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.errors import InvalidParameter
from husk.runtime.spec import capabilities
from husk.runtime.spec.capabilities import ALL, DEFAULT, from_mask, resolve

names = st.lists(st.sampled_from([*ALL, "ALL"]), max_size=6)


def test_a_container_gets_the_fourteen_that_docker_gives() -> None:
    assert resolve(None, None, False) == DEFAULT
    assert len(DEFAULT) == 14
    assert sum(1 << ALL.index(name) for name in DEFAULT) == 0xA80425FB


def test_names_are_accepted_with_and_without_prefix_in_any_case() -> None:
    expected = set(DEFAULT) | {"CAP_NET_ADMIN"}
    for name in ("NET_ADMIN", "net_admin", "CAP_NET_ADMIN", "cap_net_admin"):
        assert set(resolve([name], [], False)) == expected


def test_all_added_means_all_but_the_dropped() -> None:
    assert set(resolve(["ALL"], ["MKNOD"], False)) == set(ALL) - {"CAP_MKNOD"}


def test_all_dropped_means_only_the_added() -> None:
    assert resolve(["CHOWN"], ["all"], False) == ("CAP_CHOWN",)
    assert resolve([], ["ALL"], False) == ()


def test_privileged_and_all_give_what_the_host_has() -> None:
    host = {"CAP_CHOWN", "CAP_KILL"}
    assert resolve([], ["CHOWN"], True, host) == ("CAP_CHOWN", "CAP_KILL")
    assert resolve(["ALL"], [], False, host) == ("CAP_CHOWN", "CAP_KILL")


@pytest.mark.parametrize(("add", "drop", "field"), [(["NOPE"], [], "CapAdd"), ([], ["NOPE"], "CapDrop")])
def test_an_unknown_name_is_refused(add: list[str], drop: list[str], field: str) -> None:
    with pytest.raises(InvalidParameter, match=f'^invalid {field}: unknown capability: "CAP_NOPE"$'):
        resolve(add, drop, False)


@given(names, names)
def test_the_result_is_in_the_kernels_order_and_holds_nothing_dropped(add: list[str], drop: list[str]) -> None:
    result = resolve(add, drop, False)
    assert list(result) == sorted(set(result), key=ALL.index)
    assert not (set(result) & set(drop)) - set(add)


@given(st.integers(min_value=0, max_value=2 ** len(ALL) - 1))
def test_a_mask_becomes_exactly_the_names_of_its_bits(mask: int) -> None:
    assert sum(1 << ALL.index(name) for name in from_mask(mask)) == mask
    assert capabilities.from_mask(mask) <= set(ALL)
