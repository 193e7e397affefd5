"""docs/howto/troubleshooting.md knows every message of the source that asks its reader to do something."""

import re
from pathlib import Path

from tests.support.asking_messages import all_texts, asking

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/husk"
PAGE = ROOT / "docs/howto/troubleshooting.md"
# So much has to be the same, or an entry would stand for anything.
FIXED = 10


def entries() -> list[re.Pattern[str]]:
    """Return the texts in the first columns of the page's tables, as patterns: `…` is anything."""
    columns = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = [entry for column in columns for entry in re.findall(r"`([^`]+)`", column)]
    assert len(found) > 70
    for entry in found:
        assert len(entry.replace("…", "")) >= FIXED, f"{entry!r} says too little"
    return [re.compile(".*".join(map(re.escape, entry.split("…")))) for entry in found]


def plain(text: str) -> str:
    """As it is on the page: without the marks around commands."""
    return text.replace("`", "").replace("|", "")


def test_every_message_that_asks_for_something_is_on_the_page() -> None:
    known = entries()
    messages = list(asking(SOURCE))
    assert len(messages) > 80
    missing = [each for each in messages if not any(entry.search(plain(each.text)) for entry in known)]
    assert not missing, "troubleshooting.md lacks:\n" + "\n".join(f"{each.place}: {each.text}" for each in missing)


def test_the_page_has_no_message_that_nobody_says() -> None:
    texts = "\n".join(plain(text) for text in all_texts(SOURCE))
    stale = [entry.pattern for entry in entries() if not entry.search(texts)]
    assert not stale, stale


def test_which_texts_ask(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        'cure = "mount it"\n'
        "def check(path):\n"
        '    """Choose: run it."""\n'
        '    raise Conflict(f"{path} is there: move it away")\n'
        '    raise Invalid("no such level: choose one of a, b")\n'
        '    log.warning("it is late. Stop %s", path)\n'
        '    log.debug("it is late: stop it")\n'
        '    return Finding("root", "bad", "no root", "husk doctor helps")\n'
    )
    assert {each.text for each in asking(tmp_path)} == {
        "mount it",
        "{} is there: move it away",
        "it is late. Stop %s",
        "husk doctor helps",
    }
