"""The inputs of a run of all tests are the same each time; `make fuzz` looks for others."""

import os
import random

import pytest


@pytest.fixture
def chance(request: pytest.FixtureRequest, chance: random.Random) -> random.Random:
    return chance if "FUZZ_SECONDS" in os.environ else random.Random(request.node.name)
