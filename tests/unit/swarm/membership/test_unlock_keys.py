"""Unlock keys as Docker writes them."""

import pytest

from husk.errors import InvalidParameter
from husk.swarm.membership.unlock_keys import new_key, read_key, write_key


def test_what_is_written_is_read_again() -> None:
    key = new_key()
    assert write_key(key).startswith("SWMKEY-1-") and read_key(f" {write_key(key)}\n") == key


@pytest.mark.parametrize("text", ["", "SWMKEY-1-", "SWMKEY-1-!!", "abc"])
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(InvalidParameter, match="invalid key string"):
        read_key(text)
