"""Secrets that only a passphrase gives back."""

import pytest

from husk.storage.secrets.passphrases import seal, unseal


def test_its_passphrase_opens_it_and_no_other():
    sealed = seal(b"content", b"one", b"beside")
    assert unseal(sealed, b"one", b"beside") == b"content" and b"content" not in sealed
    assert unseal(sealed, b"two", b"beside") is None
    assert unseal(sealed, b"one", b"other") is None, "it is bound to what stands beside it"
    assert seal(b"content", b"one", b"beside")[:16] != sealed[:16], "each has a salt of its own"


@pytest.mark.parametrize("size", [0, 5, 20, 30])
def test_a_piece_of_it_is_not_opened(size: int):
    assert unseal(seal(b"content", b"one", b"")[:size], b"one", b"") is None
