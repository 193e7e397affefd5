"""An empty store of records, as tests of the engine's rooms have it."""

from tests.unit.engine.conftest import state as state
