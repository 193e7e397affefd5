"""Input from outside is read or refused, whatever it is: see `judge`."""

import os

import pytest

from tests.fuzz.judge import Target, fuzz
from tests.fuzz.targets import TARGETS

# For all of them together.
SECONDS = float(os.environ.get("FUZZ_SECONDS", "40"))


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_is_hostile_is_refused(target: Target, chance):
    assert fuzz(target, chance, SECONDS / len(TARGETS)) > len(target.examples)
