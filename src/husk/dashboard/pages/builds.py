"""Builds: those that were done and are under way, what each step wrote, and what is kept for the next ones."""

from husk.api.http.response import Answer
from husk.dashboard.build_steps import RUNNING, arguments, build, said_of, steps
from husk.dashboard.rendering import size
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.secret_words import masked
from husk.dashboard.usage import total
from husk.dashboard.visit import Visit
from husk.errors import NotImplementedYet


async def builds(visit: Visit) -> Answer:
    """Those that the builder remembers, the newest first."""
    try:
        found = [build(record) for record in await visit.site.buildkit.builds()]
    except NotImplementedYet:
        return visit.page("builds.html", builds=[], known=False)
    return visit.page("builds.html", builds=found, known=True)


async def one(visit: Visit) -> Answer:
    """One build with its steps."""
    record = await visit.site.buildkit.build(visit.words["build"])
    shown = build(record)
    told = await visit.site.buildkit.told_by(record.ref, ended=shown.state != RUNNING)
    made, facts = steps(told), said_of(record)
    if visit.site.read_only:
        facts = [(word, masked(value)) for word, value in facts]
        for step in made:
            step.name = masked(step.name)
    return visit.page("build.html", build=shown, steps=made, facts=facts, arguments=arguments(record))


async def ask_forget(visit: Visit) -> Answer:
    found = build(await visit.site.buildkit.build(visit.words["build"]))
    return visit.confirm(
        f"Forget the build of {found.name}?",
        details="Its record and what its steps wrote are gone then. The image that it made stays.",
        verb="Forget",
        back=f"/builds/{found.ref}",
    )


async def forget(visit: Visit) -> Answer:
    record = await visit.site.buildkit.build(visit.words["build"])
    await visit.site.buildkit.forget(record.ref)
    return visit.redirect("/builds", f"The build of {build(record).name} is forgotten.")


async def cache(visit: Visit) -> Answer:
    """Show the records of the builder's cache, the largest first."""
    found = (await visit.engine.df("build-cache")).get("BuildCache") or []
    found.sort(key=lambda each: -int(each.get("Size") or 0))
    return visit.page("build_cache.html", records=found, total=total(found, "Size"))


async def ask_prune(visit: Visit) -> Answer:
    found = (await visit.engine.df("build-cache")).get("BuildCache") or []
    unused = [each for each in found if not each.get("InUse")]
    return visit.confirm(
        "Remove what builds have kept?",
        details=f"{len(unused)} records of {len(found)} are not in use, of {size(total(unused, 'Size'))}. "
        "The next builds take longer.",
        verb="Remove",
        back="/builds/cache",
        inputs={"all": "Also what images of this engine share"},
    )


async def prune(visit: Visit) -> Answer:
    told = await visit.engine.images.prune_builds(all="all" in visit.form)
    count = len(told.get("CachesDeleted") or [])
    return visit.redirect(
        "/builds/cache", f"{count} records were removed, which freed {size(int(told.get('SpaceReclaimed') or 0))}."
    )


ROUTES: tuple[PageRoute, ...] = (
    page("/builds", builds),
    page("/builds/cache", cache),
    page("/builds/cache/prune", ask_prune),
    change("/builds/cache/prune", prune),
    page("/builds/{build}", one),
    page("/builds/{build}/forget", ask_forget),
    change("/builds/{build}/forget", forget),
)
