"""Names for containers that nobody named."""

import re

from husk.engine.model.names import random_name


class Everything:
    def __contains__(self, name: object) -> bool:
        return True


class AllWithoutNumbers:
    def __contains__(self, name: object) -> bool:
        return not str(name)[-1].isdigit()


def test_a_name_is_a_mood_and_a_person() -> None:
    assert re.fullmatch(r"[a-z]+_[a-z]+", random_name(()))


def test_a_number_helps_when_names_are_taken() -> None:
    assert re.fullmatch(r"[a-z]+_[a-z]+\d+", random_name(AllWithoutNumbers()))


def test_there_is_always_a_name() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", random_name(Everything()))
