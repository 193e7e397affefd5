"""The layer store in a temporary directory, as tests of storage have it."""

from tests.integration.storage.conftest import no_sync as no_sync
from tests.integration.storage.conftest import store as store
