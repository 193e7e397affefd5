"""Ids and names of the cluster's objects."""

import pytest

from husk.errors import InvalidParameter
from husk.swarm.model.ids import check_object_name, check_service_name, new_id


def test_ids_are_25_characters_and_differ() -> None:
    ids = {new_id() for _ in range(100)}
    assert len(ids) == 100 and all(len(one) == 25 and one.isalnum() and one == one.lower() for one in ids)


@pytest.mark.parametrize("name", ["web", "w", "my-app_2", "a" * 63])
def test_good_names_of_services(name: str) -> None:
    assert check_service_name(name) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "name must be provided"),
        ("a" * 64, "63 characters or fewer"),
        ("-web", "valid as a DNS name component"),
        ("web-", "valid as a DNS name component"),
        ("w.b", "valid as a DNS name component"),
        ("wéb", "valid as a DNS name component"),
        ("0" * 62 + "!", "valid as a DNS name component"),
        ("web\n", "valid as a DNS name component"),
    ],
)
def test_bad_names_of_services(name: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        check_service_name(name)


@pytest.mark.parametrize("name", ["key", "a.b-c_d", "x" * 64])
def test_good_names_of_secrets(name: str) -> None:
    assert check_object_name(name) == name


@pytest.mark.parametrize("name", ["", ".hidden", "end.", "x" * 65, "a b", "a/b"])
def test_bad_names_of_secrets(name: str) -> None:
    with pytest.raises(InvalidParameter, match=r"must be \[a-zA-Z0-9\]$"):
        check_object_name(name)
