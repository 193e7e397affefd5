"""URLs of strangers are split in a time that does not grow with the square of their length."""

import ast
from pathlib import Path

import pytest

from husk.text.urls import LONGEST, split_url

SOURCE = Path(__file__).resolve().parents[3] / "src/husk"
ACCENTS = "\u0300\u0316"
# Programs of the user's own, who has nobody to wait for them.
PROGRAMS = ("cli", "client")


@pytest.mark.parametrize(
    "url",
    [
        f"https://{ACCENTS * LONGEST}/a",
        f"//{ACCENTS * LONGEST}",
        f"https:/\n/{ACCENTS * LONGEST}?a",
        f" https://user:{ACCENTS * LONGEST}@example/a",
    ],
)
def test_an_authority_that_takes_long_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="authority"):
        split_url(url)


@pytest.mark.parametrize(
    ("url", "netloc"),
    [
        ("https://b\u00fccher.example:5000/a", "b\u00fccher.example:5000"),
        (f"https://example/{ACCENTS * LONGEST}", "example"),
        ("https://" + "a" * 70_000 + "/b", "a" * 70_000),
        (ACCENTS * LONGEST, ""),
    ],
)
def test_all_others_are_split_as_the_library_does(url: str, netloc: str) -> None:
    assert split_url(url).netloc == netloc


def test_the_daemon_splits_no_url_otherwise() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE)
        if module.parts[0] in PROGRAMS or module.name == "urls.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.attr if isinstance(node, ast.Attribute) else node.name if isinstance(node, ast.alias) else ""
            if name in ("urlsplit", "urlparse"):
                found.append(f"{module}: {name}")
    assert found == []
