"""Images: their names, layers and users; getting, sending, naming and removing them."""

from husk.api.http.response import Answer
from husk.client.image import Image
from husk.dashboard.rendering import size
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.secret_words import masked
from husk.dashboard.sorting import Column, sorting
from husk.dashboard.steps import freed, steps
from husk.dashboard.transfers import PULL, PUSH
from husk.dashboard.visit import Visit
from husk.errors import InvalidParameter


async def images(visit: Visit) -> Answer:
    found = await visit.engine.images.list()
    containers = await visit.engine.containers.list(all=True)
    users: dict[str, int] = {}
    for container in containers:
        image = str(container.attrs.get("ImageID", ""))
        users[image] = users.get(image, 0) + 1
    columns = {
        "name": Column("Name", lambda image: (not image.tags, image.tags, image.id)),
        "size": Column("Size", lambda image: image.size, is_number=True),
        "created": Column("Created", lambda image: image.attrs.get("Created"), is_number=True),
        "containers": Column("Containers", lambda image: users.get(image.id, 0), is_number=True),
    }
    order = sorting(visit, columns)
    total = sum(image.size for image in found)
    recent = visit.site.transfers.recent
    return visit.page(
        "images.html", images=order.ordered(found), order=order, users=users, total=total, transfers=recent
    )


async def image(visit: Visit) -> Answer:
    found = await _image(visit)
    made = steps(await found.history(), (found.attrs.get("RootFS") or {}).get("Layers") or [])
    if visit.site.read_only:
        made = [step._replace(command=masked(step.command), comment=masked(step.comment)) for step in made]
    users = await visit.engine.containers.list(all=True, filters={"ancestor": found.id})
    largest = max((step.size for step in made), default=0)
    return visit.page("image.html", image=found, steps=made, largest=largest or 1, users=users)


async def pull(visit: Visit) -> Answer:
    name = visit.form.get("name").strip()
    if not name:
        raise InvalidParameter("which image? Give a name such as busybox or registry.example/app:1")
    return visit.redirect(f"/images/transfers/{visit.site.transfers.start(PULL, name).id}")


async def push(visit: Visit) -> Answer:
    found = await _image(visit)
    name = visit.form.get("name")
    if name not in found.tags:
        raise InvalidParameter(f"{found.short_id} is not named {name!r}")
    return visit.redirect(f"/images/transfers/{visit.site.transfers.start(PUSH, name).id}")


async def transfer(visit: Visit) -> Answer:
    return visit.page("transfer.html", transfer=visit.site.transfers.get(visit.words["transfer"]))


async def tag(visit: Visit) -> Answer:
    found = await _image(visit)
    name = visit.form.get("name").strip()
    if not name:
        raise InvalidParameter("which name? Give one such as registry.example/app:1")
    await found.tag(name)
    return visit.redirect(_path(found), f"{found.short_id} is named {name}, too.")


async def ask_untag(visit: Visit) -> Answer:
    found, name = await _image(visit), visit.words["name"]
    last = found.tags == [name]
    return visit.confirm(
        f"Take the name {name} away?",
        details="It is its last name: the image is removed with it, if no container has it." if last else "",
        verb="Take away",
        back=_path(found),
    )


async def untag(visit: Visit) -> Answer:
    name = visit.words["name"]
    told = await visit.engine.images.remove(name)
    gone = any("Deleted" in each for each in told)
    return visit.redirect("/images" if gone else f"/images/{visit.words['image']}", f"{name} was taken away.")


async def ask_remove(visit: Visit) -> Answer:
    found = await _image(visit)
    users = await visit.engine.containers.list(all=True, filters={"ancestor": found.id})
    details = f"Its names: {', '.join(found.tags)}. " if found.tags else ""
    if users:
        details += f"Containers are made of it: {', '.join(each.name for each in users)}."
    several = len(found.tags) > 1 or bool(users)
    inputs = {"force": "Remove it with all its names, and although containers are made of it"} if several else {}
    return visit.confirm(
        f"Remove the image {found.short_id}?", details=details.strip(), verb="Remove", back=_path(found), inputs=inputs
    )


async def remove(visit: Visit) -> Answer:
    found = await _image(visit)
    await found.remove(force="force" in visit.form)
    return visit.redirect("/images", f"The image {found.short_id} was removed.")


async def ask_prune(visit: Visit) -> Answer:
    found = (await visit.engine.df("image")).get("Images") or []
    nameless, unused = freed(found, all=False), freed(found, all=True)
    return visit.confirm(
        "Remove images that nobody uses?",
        details=f"Without a name: {nameless.images}, which frees {size(nameless.size)}. "
        f"All that no container has: {unused.images}, which frees {size(unused.size)}.",
        verb="Remove",
        back="/images",
        inputs={"all": "All that no container has, also those with a name"},
    )


async def prune(visit: Visit) -> Answer:
    told = await visit.engine.images.prune({"dangling": "all" not in visit.form})
    freed_bytes = size(int(told.get("SpaceReclaimed") or 0))
    count = sum("Deleted" in each for each in told.get("ImagesDeleted") or [])
    return visit.redirect("/images", f"{count} images and layers were removed, which freed {freed_bytes}.")


async def _image(visit: Visit) -> Image:
    return await visit.engine.images.get(visit.words["image"])


def _path(image: Image) -> str:
    return f"/images/{image.short_id}"


ROUTES: tuple[PageRoute, ...] = (
    page("/images", images),
    change("/images/pull", pull),
    page("/images/prune", ask_prune),
    change("/images/prune", prune),
    page("/images/transfers/{transfer}", transfer),
    page("/images/{image}", image),
    change("/images/{image}/push", push),
    change("/images/{image}/tag", tag),
    page("/images/{image}/untag/{name...}", ask_untag),
    change("/images/{image}/untag/{name...}", untag),
    page("/images/{image}/remove", ask_remove),
    change("/images/{image}/remove", remove),
)
