"""Places where a word is searched."""

import pytest

from husk.errors import InvalidParameter
from husk.registry.search import split_term


@pytest.mark.parametrize(
    ("term", "host", "word"),
    [
        ("db", "", "db"),
        ("team/db", "", "team/db"),
        ("quay.example/db", "quay.example", "db"),
        ("localhost/db", "localhost", "db"),
        ("host:5000/team/db", "host:5000", "team/db"),
        ("docker.io/db", "", "db"),
        ("index.docker.io/library/db", "", "library/db"),
    ],
)
def test_the_registry_of_a_term(term: str, host: str, word: str) -> None:
    assert split_term(term) == (host, word)


def test_a_scheme_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="should not have a scheme"):
        split_term("https://quay.example/db")
