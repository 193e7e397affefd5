"""One meaning, one name: a class name that many modules define is a word of the field, not one for what is at hand."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import husk

SOURCE = Path(husk.__file__).parent
MANY = 4
# Docker's, OCI's and BuildKit's things, each as it is stored, sent, spoken of by clients and asked of a driver.
WORDS = {
    "Connection", "Images", "Mount", "Networks", "Platform", "Pruned", "Repositories", "Trees", "Ulimit", "Volume",
}  # fmt: skip


@cache
def names() -> Counter[str]:
    """Return how many modules define each public class."""
    texts = (path.read_text() for path in SOURCE.rglob("*.py"))
    return Counter(name for text in texts for name in re.findall(r"^class ([A-Z]\w*)", text, re.MULTILINE))


def test_few_names_stand_in_many_modules() -> None:
    often = {name for name, count in names().items() if count >= MANY}
    assert often - WORDS == set(), "give each its own name, or say above why they mean the same"
    assert WORDS - often == set(), "these stand in few modules now: take them out"


def test_words_that_once_meant_several_things_mean_one() -> None:
    assert [names()[name] for name in ("Config", "HostFacts", "Place")] == [1, 1, 1]
