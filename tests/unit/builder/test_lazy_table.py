"""Parts by name are made when they are first asked for, once each."""

import pytest

from husk.builder.lazy_table import LazyTable


def test_a_part_is_made_once_and_not_before_it_is_asked_for() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("git")
        return "a part"

    table = LazyTable({"git": make})
    assert "git" in table and "web" not in table and list(table) == ["git"] and len(table) == 1
    assert made == []
    assert table["git"] is table["git"] and table.get("web") is None
    assert made == ["git"]
    with pytest.raises(KeyError):
        table["web"]
