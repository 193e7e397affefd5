import errno

import pytest

from husk.kernel.path_walk import walk

LINKS = {"/lib": "usr/lib", "/usr/lib/self": ".", "/up": "../../usr", "/abs": "/usr", "/a": "b", "/b": "a"}


def look(above: list[str], name: str, last: bool) -> str | None:
    return LINKS.get("/" + "/".join([*above, name]))


@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("", []),
        ("/", []),
        ("./usr//lib/.", ["usr", "lib"]),
        ("../../etc", ["etc"]),
        ("lib/x", ["usr", "lib", "x"]),
        ("lib/self/x", ["usr", "lib", "x"]),
        ("up/share/../bin", ["usr", "bin"]),
        ("abs/bin", ["usr", "bin"]),
        ("lib/../bin", ["usr", "bin"]),
        ("nowhere/..", []),
    ],
)
def test_where_a_path_leads(path: str, leads: list[str]) -> None:
    assert walk(path, look, 40) == leads


def test_links_that_lead_to_each_other() -> None:
    with pytest.raises(OSError, match="/a") as raised:
        walk("/a", look, 40)
    assert raised.value.errno == errno.ELOOP
    assert walk("lib/self", look, 2) == ["usr", "lib"], "as many as that are followed"
    with pytest.raises(OSError, match="lib/self"):
        walk("lib/self", look, 1)


def test_the_last_part_is_told() -> None:
    seen: list[tuple[str, bool]] = []

    def told(above: list[str], name: str, last: bool) -> str | None:
        seen.append((name, last))
        return None

    walk("a/b/./", told, 0)
    walk("a/..", told, 0)
    assert seen == [("a", False), ("b", True), ("a", False)]
