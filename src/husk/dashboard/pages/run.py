"""Running a container from a form, which may begin as a copy of another container."""

from husk.api.http.response import Answer
from husk.client.container import Container
from husk.client.spec import size
from husk.dashboard.router import PageRoute, change, page
from husk.dashboard.run_form import RESTARTS, RunForm, copied
from husk.dashboard.transfers import PULL
from husk.dashboard.visit import Visit
from husk.errors import Forbidden, HuskError, InvalidParameter, NotFound


async def ask(visit: Visit) -> Answer:
    """The form; `?image=` begins with an image, `?from=` with a copy of a container."""
    if visit.site.read_only:
        raise Forbidden("this dashboard is read-only: it runs nothing")
    form = RunForm(image=visit.query.get("image"))
    left: list[str] = []
    if name := visit.query.get("from"):
        container = await visit.engine.containers.get(name)
        try:
            image = (await visit.engine.images.get(str(container.attrs.get("Image")))).attrs
        except NotFound:
            image = None
        form, left = copied(container.attrs, image)
    return await _shown(visit, form, left)


async def preview(visit: Visit) -> Answer:
    """The form as it was filled in, with what is beside it: for the script, and for the button without one."""
    return await _shown(visit, RunForm.read(visit.form), [])


async def _shown(visit: Visit, form: RunForm, left: list[str]) -> Answer:
    problem, command, compose = "", "", ""
    try:
        if form.image:
            form.spec()
        command, compose = form.docker_run(), form.compose()
    except InvalidParameter as error:
        problem = error.message
    networks = sorted(each.name for each in await visit.engine.networks.list())
    return visit.page(
        "run.html",
        form=form,
        left=left,
        problem=problem,
        command=command,
        compose=compose,
        networks=networks,
        restarts=RESTARTS,
    )


async def run(visit: Visit) -> Answer:
    """Make the container and start it. An image that is not here is pulled first: the page of the pull is shown."""
    wanted = RunForm.read(visit.form).spec()
    try:
        await visit.engine.images.get(wanted.image)
    except NotFound:

        async def then() -> str:
            made = await visit.engine.containers.create(wanted, pull="never")
            await _started(made)
            return f"{made.name or made.short_id} was started."

        return visit.redirect(f"/images/transfers/{visit.site.transfers.start(PULL, wanted.image, then).id}")
    made = await visit.engine.containers.create(wanted, pull="never")
    await _started(made)
    return visit.redirect(f"/containers/{made.name}", f"{made.name} was started.")


async def _started(container: Container) -> None:
    """Start it; what cannot be started is removed again, for the form is still there to be mended."""
    try:
        await container.start()
        await container.reload()
    except HuskError:
        await container.remove(force=True)
        raise


async def ask_limits(visit: Visit) -> Answer:
    container = await visit.engine.containers.get(visit.words["name"])
    form, _ = copied(container.attrs, None)
    return visit.page("limits.html", name=container.name, form=form, restarts=RESTARTS)


async def limits(visit: Visit) -> Answer:
    """Change the memory, the processors and the restart policy of a container, also while it runs. What is left
    empty stays: the API has no word for taking a limit away."""
    container = await visit.engine.containers.get(visit.words["name"])
    form = RunForm.read(visit.form)
    spec = RunForm(image="any", memory=form.memory, cpus=form.cpus, restart=form.restart).spec()
    changed: dict[str, object] = {"RestartPolicy": {"Name": form.restart}}
    if spec.memory:
        # Swap is counted with the memory: without a word on it, as much again.
        changed |= {"Memory": size(spec.memory), "MemorySwap": 2 * size(spec.memory)}
    if spec.cpus:
        changed["NanoCpus"] = round(spec.cpus * 1e9)
    await container.update(**changed)
    return visit.redirect(f"/containers/{container.name}", f"The limits of {container.name} were changed.")


ROUTES: tuple[PageRoute, ...] = (
    page("/run", ask),
    change("/run", run),
    change("/run/preview", preview),
    page("/containers/{name}/limits", ask_limits),
    change("/containers/{name}/limits", limits),
)
