"""The common part of all things of an engine: an id, the engine's own document, and a way to ask for it again."""

from collections.abc import Mapping
from typing import Any, TypeVar

from husk.client import markup
from husk.client.calls import Calls, field

T = TypeVar("T")


class Listing(list[T]):
    """A list of things, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        things: list[Any] = list(self)
        rows = [each._columns() for each in things]
        return markup.table(list(rows[0]), [list(row.values()) for row in rows]) if rows else "<p>none</p>"


class Thing:
    """Something that an engine has. `attrs` is what the engine last said of it; `reload` asks again."""

    def __init__(self, calls: Calls, attrs: Mapping[str, Any]) -> None:
        self._calls = calls
        self.attrs = dict(attrs)  #: The engine's own document, as it was last told

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.short_id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and type(other) is type(self) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> str:
        """The id."""
        return str(self.attrs["ID"] if "ID" in self.attrs else field(self.attrs, "Id"))

    @property
    def short_id(self) -> str:
        """The first 12 characters of the id."""
        return self.id.removeprefix("sha256:")[:12]

    def _columns(self) -> dict[str, str]:
        """Give the cells of it that a notebook shows, by their titles."""
        return {"name": str(getattr(self, "name", "")), "id": self.short_id}

    def _repr_html_(self) -> str:
        return Listing([self])._repr_html_()

    async def reload(self) -> None:
        """Ask the engine again, and put its answer into `attrs`."""
        self.attrs = await self._calls.get(self._path)

    @property
    def _path(self) -> str:
        """The thing's path in the API."""
        raise NotImplementedError


class Declared(Thing):
    """Something of a swarm: what was asked for is its `Spec`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.short_id} {self.name}>"

    @property
    def name(self) -> str:
        """The name that was given."""
        return str(self._spec.get("Name", ""))

    @property
    def labels(self) -> dict[str, str]:
        """The labels that were given."""
        return dict(self._spec.get("Labels") or {})

    @property
    def _spec(self) -> Mapping[str, Any]:
        return self.attrs.get("Spec") or {}

    @property
    def _version(self) -> int:
        """The version of the state in `attrs`. A change of an older version is refused."""
        return int((self.attrs.get("Version") or {}).get("Index", 0))


def id_of(thing: str | Thing) -> str:
    """The id of a thing, or the name that was given for it."""
    return thing.id if isinstance(thing, Thing) else thing
