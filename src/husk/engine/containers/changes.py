"""What has a container changed in its file system since it was created?"""

from husk import threads
from husk.engine.containers.index import Index
from husk.engine.containers.places import Places
from husk.engine.containers.roots import Roots
from husk.storage.changes import Change, changes


class Differ:
    def __init__(self, index: Index, places: Places, roots: Roots) -> None:
        self._index = index
        self._places = places
        self._roots = roots

    async def changes(self, reference: str) -> list[Change]:
        record = self._index.find(reference).record
        upper = self._places.root(record.id).upper
        return await threads.trees(changes, str(upper), self._roots.lower(record))
