import pytest

from husk.builder.store.file_actions import id_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("0" * 5000, 0),
        ("4294967295", 4294967295),
        ("4294967296", None),
        ("9" * 5000, None),
        ("-1", None),
        ("1_0", None),
        (" 1", None),
        ("٣", None),
        ("", None),
    ],
)
def test_a_number_of_a_user_has_32_bits(text: str, number: int | None) -> None:
    assert id_of(text) == number
