"""Fields between commas, one line of CSV: `type=cache,"target=/a,b"`."""

import csv


class BadFields(ValueError):
    """Quotes that do not fit."""


def comma_fields(text: str) -> list[str]:
    """BadFields for what is no such line."""
    if not any(special in text for special in '"\r\n'):
        return text.split(",") if text else []

    try:
        return [field for row in csv.reader([text], strict=True) for field in row]
    except csv.Error as error:
        raise BadFields(str(error)) from None
