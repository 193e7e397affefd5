"""Reading of numbers that strangers wrote. Pure.

`str.isdigit` is true for "²", which `int` refuses, and for the digits of every script, which `int` takes and no other
engine does; and `int` refuses numbers of thousands of digits with an error of its own.
"""

_MOST_DIGITS = 40
"""Characters of a number: more than any that is meant, with zeros in front."""


def read_number(text: str, least: int = 0, most: int = (1 << 63) - 1) -> int | None:
    """Read a decimal number in plain digits, with a sign if `least` is negative; None for all else and one outside."""
    digits = text[1:] if least < 0 and text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if least <= number <= most else None
