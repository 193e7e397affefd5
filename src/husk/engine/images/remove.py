"""`docker rmi`: Docker's rules of conflict, then names, records, blobs and layers go.

An image that stands for an index goes with it, all platforms at once. One platform alone goes by its own id, or when
the client names it.
"""

from collections.abc import Callable, Sequence
from functools import partial

from husk.engine.images.catalog import FoundImage
from husk.engine.images.index import ImageIndex, choose_image
from husk.engine.images.store import ImageStore
from husk.engine.model.container import Container
from husk.engine.model.image import Image, Removal
from husk.errors import Conflict, InvalidParameter, NotFound
from husk.registry import reference as references
from husk.registry.manifest import Platform
from husk.registry.reference import Reference


class ImageRemover:
    def __init__(self, store: ImageStore) -> None:
        self._store = store

    async def remove(self, text: str, force: bool, noprune: bool, platforms: Sequence[Platform] = ()) -> list[Removal]:
        if not text.strip():
            raise InvalidParameter("image name cannot be blank")
        found = self._store.catalog.look_up(text)
        image = found.image
        if platforms and (going := self._some(text, found, platforms)):
            self._refuse(going, [], force)
            return await self._delete(going, [], noprune, stays=_nothing)
        names = self._store.catalog.names(image)
        if not _is_id(text, image, names):
            return await self._remove_name(text, image, names, force, noprune)
        together = self._store.catalog.together(image)
        self._refuse(together, names, force)
        removals = await self._untag(image, names)
        shown = self._store.catalog.shown_by(image)
        if not shown:
            return removals + await self._delete(together, [], noprune, stays=self._store.catalog.is_target)
        return removals + await self._delete(self._unneeded(together, shown), shown, noprune)

    def _some(self, text: str, found: FoundImage, platforms: Sequence[Platform]) -> list[Image]:
        """The images of these platforms; none of them if that is all that is here, so that the whole goes."""
        here = self._store.catalog.candidates(found)
        going: dict[str, Image] = {}
        for platform in platforms:
            image = choose_image(here, platform)
            if image is None:
                raise NotFound(f"image {text} is not here for the platform {platform}")
            going[image.id] = image
        return [] if len(going) == len({image.id for _, image in here}) else list(going.values())

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
        together = self._store.catalog.together(image)
        if _is_single(names) and not force and (user := self._user_of(together)) is not None:
            raise Conflict(
                f'conflict: unable to remove repository reference "{text}" (must force) - container {user.id[:12]} '
                f"is using its referenced image {_short(image)}"
            )
        removals = await self._untag(image, going)
        shown = self._store.catalog.shown_by(image)
        left = self._store.catalog.names(image)
        if not left and self._may_go_unnamed(together, force):
            return removals + await self._delete(self._unneeded(together, shown), shown, noprune)
        return removals + (await self._remove_nameless(shown) if left else [])

    async def untag(self, image: Image, names: list[Reference]) -> list[Removal]:
        """Take names off an image that stays."""
        shown = self._store.catalog.shown_by(image)
        return await self._untag(image, names) + await self._remove_nameless(shown)

    async def _remove_nameless(self, indexes: list[ImageIndex]) -> list[Removal]:
        """An index that has lost its last name goes without the image that stood for it, which has others."""
        nameless = [index for index in indexes if not self._store.catalog.is_named(index)]
        return [removal for index in nameless for removal in await self.remove_index(index)]

    async def remove_index(self, index: ImageIndex) -> list[Removal]:
        """Forget an index that no name points to, with those of its images that nobody else needs."""
        members = self._store.catalog.images_of(index)
        going = [image for image in members if self._may_go_unnamed([image], force=False)]
        return await self._delete(self._unneeded(going, [index]), [index], noprune=True)

    def _may_go_unnamed(self, images: list[Image], force: bool) -> bool:
        """With its last name an image goes, unless others need it; force overrides containers that do not run."""
        user = self._user_of(images, running=force)
        return user is None and not any(self._store.catalog.children(image) for image in images)

    def _refuse(self, images: list[Image], names: list[Reference], force: bool) -> None:
        """Raise if images must not go by the id of the first."""
        short = _short(images[0])
        if any(self._store.catalog.children(image) for image in images):
            raise Conflict(f"conflict: unable to delete {short} (cannot be forced) - image has dependent child images")
        if (user := self._user_of(images, running=True)) is not None:
            raise Conflict(
                f"conflict: unable to delete {short} (cannot be forced) - image is being used by running "
                f"container {user.id[:12]}"
            )
        if names and not _is_single(names) and not force:
            raise Conflict(
                f"conflict: unable to delete {short} (must be forced) - image is referenced in multiple repositories"
            )
        if not force and (user := self._user_of(images)) is not None:
            raise Conflict(
                f"conflict: unable to delete {short} (must be forced) - image is being used by stopped "
                f"container {user.id[:12]}"
            )

    def _user_of(self, images: list[Image], running: bool = False) -> Container | None:
        """A container that was made of one of the images or mounts it; with `running`, only one that runs counts."""
        ids = {image.id for image in images}
        users = (c for c in self._store.containers() if c.uses(ids))
        return next((c for c in users if c.state.running or not running), None)

    async def _untag(self, image: Image, names: list[Reference]) -> list[Removal]:
        await self._store.catalog.forget_names(*names)
        for _ in names:
            self._store.tell("untag", image)
        return [Removal(untagged=name.familiar) for name in names]

    async def _delete(
        self, images: list[Image], indexes: list[ImageIndex], noprune: bool, stays: Callable[[str], bool] | None = None
    ) -> list[Removal]:
        """Remove images and indexes, but what `stays` (if it is not given: what a name or another index keeps)."""
        catalog = self._store.catalog
        content = [digest for image in images for index in catalog.indexes_of(image) for digest in index.content]
        content += [digest for index in indexes for digest in index.content]
        stays = stays or partial(self._kept, {index.digest for index in indexes})
        gone = await catalog.delete_all([image.id for image in images], indexes, stays)
        images = [image for image in images if image.id in gone]
        removals: list[Removal] = []
        for image in images:
            self._store.tell("delete", image)
            removals.append(Removal(deleted=image.id))
            content += image.content
        chain = [chain_id for image in reversed(images) for chain_id in image.chain_ids]
        removals += [Removal(deleted=chain_id) for chain_id in await self._store.release(chain, content)]
        for image in images:
            parent = catalog.get(image.parent) if image.parent else None
            if not noprune and parent is not None and self._is_loose(parent):
                removals += await self._delete([parent], [], noprune)
        return removals

    def _unneeded(self, images: list[Image], indexes: list[ImageIndex]) -> list[Image]:
        """Those images that no name of their own and no other index keeps when these indexes go."""
        going = {index.digest for index in indexes}
        return [image for image in images if not self._kept(going, image.id)]

    def _kept(self, indexes: set[str], digest: str) -> bool:
        """Return True if a name, an index other than these, or a name of one of these keeps an image or index."""
        catalog = self._store.catalog
        image = catalog.get(digest)
        around = catalog.indexes_of(image) if image is not None else []
        return catalog.is_target(digest) or any(f.digest not in indexes or catalog.is_named(f) for f in around)

    def _is_loose(self, image: Image) -> bool:
        catalog = self._store.catalog
        return not (
            catalog.names(image) or catalog.children(image) or catalog.indexes_of(image) or self._user_of([image])
        )


def _nothing(digest: str) -> bool:
    return False


def _is_id(text: str, image: Image, names: list[Reference]) -> bool:
    """Return True if the image was named by its id. A repository's name may be hexadecimal: names are tried first."""
    if not image.id.removeprefix("sha256:").startswith(text.removeprefix("sha256:")):
        return False
    try:
        return references.parse(text).tagged() not in names
    except InvalidParameter:
        return True


def _is_single(names: list[Reference]) -> bool:
    """Return True if the image has one name only: at most one tag, and digests of that repository alone."""
    tags = [name for name in names if not name.digest]
    return bool(names) and len(tags) <= 1 and len({name.name for name in names}) == 1


def _short(image: Image) -> str:
    return image.id.removeprefix("sha256:")[:12]
