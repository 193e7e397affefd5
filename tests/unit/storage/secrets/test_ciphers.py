"""The cipher of all that is sealed."""

import subprocess
import sys

import pytest

from husk.storage.secrets.ciphers import KEY_BYTES, decrypt, derived, encrypt

KEY = bytes(KEY_BYTES)


def test_only_the_same_key_and_text_open_it() -> None:
    sealed = encrypt(KEY, b"content", b"bound")
    assert decrypt(KEY, sealed, b"bound") == b"content"
    assert decrypt(KEY, sealed, b"other") is None
    assert decrypt(bytes([1]) * KEY_BYTES, sealed, b"bound") is None


def test_a_part_of_it_opens_nothing() -> None:
    sealed = encrypt(KEY, b"content", b"")
    assert decrypt(KEY, sealed[:-1], b"") is None
    with pytest.raises(ValueError):
        decrypt(KEY, sealed[:5], b"")


def test_each_time_it_is_another() -> None:
    assert encrypt(KEY, b"content", b"") != encrypt(KEY, b"content", b"")


def test_a_key_for_one_purpose_is_none_for_another() -> None:
    assert len({KEY, derived(KEY, b"one"), derived(KEY, b"two")}) == 3
    assert derived(KEY, b"one") == derived(KEY, b"one")


def test_what_seals_nothing_does_not_load_it() -> None:
    modules = "husk.storage.secrets.sealing, husk.storage.secrets.passphrases"
    code = f"import sys, {modules}; print('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
