"""When may an image go, and what goes with it? Docker's rules of conflict, then names, record, blobs and layers."""

from husk.engine.containers.model import Container
from husk.engine.images.model import Image, Removal
from husk.engine.images.store import ImageStore
from husk.errors import Conflict, InvalidParameter
from husk.registry import reference as references
from husk.registry.reference import Reference


class Remover:
    def __init__(self, store: ImageStore) -> None:
        self._store = store

    async def remove(self, text: str, force: bool, noprune: bool) -> list[Removal]:
        image = self._store.index.find(text)
        names = self._store.index.names(image)
        if not _is_id(text, image, names):
            return await self._remove_name(text, image, names, force, noprune)
        self._refuse(image, names, force)
        removals = await self._untag(image, names)
        return removals + await self._delete(image, noprune)

    async def _remove_name(
        self, text: str, image: Image, names: list[Reference], force: bool, noprune: bool
    ) -> list[Removal]:
        wanted = references.parse(text)
        wanted = Reference(wanted.domain, wanted.path, digest=wanted.digest) if wanted.digest else wanted.tagged()
        same_repository = [name for name in names if name.name == wanted.name]
        going = [wanted] if wanted in names else same_repository
        # The last tag of a repository takes the repository's digests along.
        if not wanted.digest and not [n for n in same_repository if not n.digest and n != wanted]:
            going = list(same_repository)
        if _is_single(names) and not force and (user := self._user_of(image)) is not None:
            raise Conflict(
                f'conflict: unable to remove repository reference "{text}" (must force) - container {user.id[:12]} '
                f"is using its referenced image {_short(image)}"
            )
        removals = await self._untag(image, going)
        if len(going) == len(names) and self._may_go_unnamed(image, force):
            removals += await self._delete(image, noprune)
        return removals

    def _may_go_unnamed(self, image: Image, force: bool) -> bool:
        """With its last name an image goes, unless others need it; force overrides containers that do not run."""
        user = self._user_of(image, running=force)
        return user is None and not self._store.index.children(image)

    def _refuse(self, image: Image, names: list[Reference], force: bool) -> None:
        """Raise if the image must not go by its id."""
        if self._store.index.children(image):
            raise Conflict(
                f"conflict: unable to delete {_short(image)} (cannot be forced) - image has dependent child images"
            )
        users = [c for c in self._store.containers() if c.image_id == image.id]
        for user in users:
            if user.state.running:
                raise Conflict(
                    f"conflict: unable to delete {_short(image)} (cannot be forced) - image is being used by running "
                    f"container {user.id[:12]}"
                )
        if names and not _is_single(names) and not force:
            raise Conflict(
                f"conflict: unable to delete {_short(image)} (must be forced) - "
                "image is referenced in multiple repositories"
            )
        if users and not force:
            raise Conflict(
                f"conflict: unable to delete {_short(image)} (must be forced) - image is being used by stopped "
                f"container {users[0].id[:12]}"
            )

    def _user_of(self, image: Image, running: bool = False) -> Container | None:
        """A container of the image; with `running`, only one that runs counts."""
        users = (c for c in self._store.containers() if c.image_id == image.id)
        return next((c for c in users if c.state.running or not running), None)

    async def _untag(self, image: Image, names: list[Reference]) -> list[Removal]:
        await self._store.index.forget_names(*names)
        for _ in names:
            self._store.events.publish("image", "untag", image.id, {"name": image.id})
        return [Removal(untagged=name.familiar) for name in names]

    async def _delete(self, image: Image, noprune: bool) -> list[Removal]:
        await self._store.index.delete(image)
        self._store.events.publish("image", "delete", image.id, {"name": image.id})
        removals = [Removal(deleted=image.id)]
        layers = await self._store.release(image.chain_ids, (image.id, image.manifest, image.index))
        removals += [Removal(deleted=chain_id) for chain_id in layers]
        parent = self._store.index.get(image.parent) if image.parent else None
        if not noprune and parent is not None and self._is_loose(parent):
            removals += await self._delete(parent, noprune)
        return removals

    def _is_loose(self, image: Image) -> bool:
        return not (self._store.index.names(image) or self._store.index.children(image) or self._user_of(image))


def _is_id(text: str, image: Image, names: list[Reference]) -> bool:
    """Was the image named by its id? A repository may have a hexadecimal name, so names are tried first."""
    if not image.id.removeprefix("sha256:").startswith(text.removeprefix("sha256:")):
        return False
    try:
        return references.parse(text).tagged() not in names
    except InvalidParameter:
        return True


def _is_single(names: list[Reference]) -> bool:
    """Has the image one name only: at most one tag, and digests of that repository alone?"""
    tags = [name for name in names if not name.digest]
    return bool(names) and len(tags) <= 1 and len({name.name for name in names}) == 1


def _short(image: Image) -> str:
    return image.id.removeprefix("sha256:")[:12]
