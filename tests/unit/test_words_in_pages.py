"""Pages tell what is so: they speak of no issue, no commit, no session of work, no day on which something was found."""

import re

import pytest

from tests.unit.test_paths_in_pages import PAGES, ROOT

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
WORDS = {
    "an issue": re.compile(r"\bissues? #?\d+|\bGH-\d+|(?<![\w/&])#\d{1,5}\b", re.IGNORECASE),
    "a commit": re.compile(r"(?<![\w./:@…-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}(?![\w./…-])"),
    "a session of work": re.compile(r"\b(?:last|previous|earlier|later) session\b|\bsession \d", re.IGNORECASE),
    "a day": re.compile(
        rf"\b(?:20\d\d-\d\d-\d\d|\d{{1,2}}\.? (?:{_MONTHS})|(?:{_MONTHS}) (?:\d{{1,2}},? )?20\d\d)\b(?!T)"
    ),
    "how it was found": re.compile(
        r"\b(?:turned out|we (?:found|noticed|learned)|it was (?:found|noticed)|(?:was|were) found (?:by|in|when|while)"
        r"|formerly|until recently|so far we)\b",
        re.IGNORECASE,
    ),
}
_FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4}(?! *[-*\d]).*$", re.MULTILINE)


def found(text: str) -> list[tuple[str, str]]:
    """Return the words of a page that speak of its making, each with its kind; blocks of code are left out."""
    plain = _INDENTED.sub("", _FENCED.sub("", text))
    return [(kind, match[0]) for kind, words in WORDS.items() for match in words.finditer(plain)]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_not_speak_of_its_making(page: str) -> None:
    assert found((ROOT / page).read_text()) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("as issue 12 wanted", "an issue"),
        ("fixed (#123)", "an issue"),
        ("since 523a0398 it is so", "a commit"),
        ("measured in the last session", "a session of work"),
        ("as of 2026-11-19", "a day"),
        ("measured on 3 November", "a day"),
        ("It was found by a test", "how it was found"),
    ],
)
def test_what_a_page_must_not_say(text: str, kind: str) -> None:
    assert [what for what, _ in found(text)] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Docker's session; `POST /session`",
        "[there](page.md#100-services) and `sha256:523a0398ffff`",
        "```\n523a0398 a commit\n```",
        "    time 2026-11-17 id 5f0c3d9a11be",
        "a moment such as `2026-01-02T03:04:05Z`",
        "134217728 bytes",
    ],
)
def test_what_a_page_may_say(text: str) -> None:
    assert found(text) == []
