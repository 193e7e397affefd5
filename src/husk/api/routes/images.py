"""Images: list, look at, name, remove, and make from a container."""

from husk.api.calls.call import Call, platform_parameter, platform_parameters
from husk.api.calls.router import change, read
from husk.api.http.response import Answer
from husk.api.types.images import AuthRequest, AuthResponse, CommitResponse, ImagePrune, ImageRemoval, ImageSummary
from husk.api.versioning import Version
from husk.api.views import images as views
from husk.engine.images.listing import FILTERS, name_patterns
from husk.engine.images.prune import FILTERS as PRUNE_FILTERS
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.filters import NO_FILTERS, Filters
from husk.engine.model.image import CommitOptions, Image, Removal
from husk.errors import InvalidParameter
from husk.registry.auth import Credentials
from husk.text.gojson import Reader

WITH_MANIFESTS = Version(1, 47)
WITH_DESCRIPTOR = Version(1, 48)
INSPECT_PLATFORM = Version(1, 49)
REMOVE_PLATFORMS = Version(1, 50)

_config = Reader(ContainerConfig)
_credentials = Reader(AuthRequest)


def listing(call: Call) -> Answer:
    if not call.request.head.raw_query:
        return call.encoded(call.common.answers.images(False, NO_FILTERS, call.version))
    images = call.engine.images
    filters = Filters.parse(call.text("filters"), FILTERS)
    patterns = name_patterns(filters)
    shared, manifests = call.flag("shared-size"), call.flag("manifests") and call.version >= WITH_MANIFESTS
    if not shared and not manifests:
        return call.encoded(call.common.answers.images(call.flag("all"), filters, call.version))

    def shown(image: Image) -> ImageSummary:
        summary = views.summary(
            image,
            images.tags(image, patterns),
            images.digests(image, patterns),
            call.version,
            size=images.size(image),
            shared_size=images.shared_size(image) if shared else -1,
        )
        if call.version >= WITH_DESCRIPTOR:
            summary.descriptor = images.target(image)
        if manifests:
            summary.manifests = [views.manifest(facts) for facts in images.manifests(image)]
        return summary

    return call.json([shown(image) for image in images.listing(call.flag("all"), filters)])


def inspect(call: Call) -> Answer:
    if not call.request.head.raw_query:
        return call.encoded(call.common.answers.image(call.argument, call.version))
    images = call.engine.images
    platform = platform_parameter(call.text("platform")) if call.version >= INSPECT_PLATFORM else None
    manifests = call.flag("manifests") and call.version >= WITH_DESCRIPTOR
    if platform is not None and manifests:
        raise InvalidParameter("conflicting options: manifests and platform options cannot both be set")
    if platform is None and not manifests:
        return call.encoded(call.common.answers.image(call.argument, call.version))
    shown, image = images.find(call.argument), images.select(call.argument, platform).image
    directories = images.directories(image.chain_ids)
    answer = views.inspect(image, images.tags(shown), images.digests(shown), call.version, directories)
    if call.version >= WITH_DESCRIPTOR:
        answer.descriptor = images.target(shown)
    if manifests:
        answer.manifests = [views.manifest(facts) for facts in images.manifests(shown)]
    return call.json(answer)


def history(call: Call) -> Answer:
    steps = call.engine.images.history(call.argument, platform_parameter(call.text("platform")))
    return call.json([views.history_item(step) for step in steps])


async def attestations(call: Call) -> Answer:
    platforms = platform_parameters(call, "platform")
    if len(platforms) > 1:
        raise InvalidParameter("multiple platforms are not supported: name one at most")
    found = await call.engine.images.attestations(
        call.argument, platforms[0] if platforms else None, call.query.getall("type"), call.flag("statement")
    )
    return call.json([views.attestation(each) for each in found])


async def tag(call: Call) -> Answer:
    await call.engine.images.tag(call.argument, call.text("repo"), call.text("tag"))
    return call.empty(201)


async def remove(call: Call) -> Answer:
    platforms = platform_parameters(call, "platforms") if call.version >= REMOVE_PLATFORMS else []
    removals = await call.engine.images.remove(call.argument, call.flag("force"), call.flag("noprune"), platforms)
    return call.json([_removal(removal) for removal in removals])


async def prune(call: Call) -> Answer:
    pruned = await call.engine.images.prune(Filters.parse(call.text("filters"), PRUNE_FILTERS))
    removals = [_removal(removal) for removal in pruned.removals]
    return call.json(ImagePrune(images_deleted=removals or None, space_reclaimed=pruned.reclaimed))


def _removal(removal: Removal) -> ImageRemoval:
    return ImageRemoval(untagged=removal.untagged) if removal.untagged else ImageRemoval(deleted=removal.deleted)


async def commit(call: Call) -> Answer:
    document = await call.document()
    config: ContainerConfig | None = None
    if document is not None and _config.mentioned(document):
        config = await call.read(document, _config)
    image_id = await call.engine.commit(
        call.text("container"),
        CommitOptions(
            repo=call.text("repo"),
            tag=call.text("tag"),
            author=call.text("author"),
            comment=call.text("comment"),
            changes=call.query.getall("changes"),
            pause=call.flag("pause") if call.text("pause") else True,
            config=config,
        ),
    )
    return call.json(CommitResponse(id=image_id), status=201)


async def login(call: Call) -> Answer:
    request = await call.body(_credentials)
    token = await call.engine.images.login(
        Credentials(
            username=request.username,
            password=request.password,
            identity_token=request.identitytoken,
            registry_token=request.registrytoken,
            server_address=request.serveraddress,
        )
    )
    return call.json(AuthResponse(identity_token=token, status="Login Succeeded"))


ROUTES = (
    read("/images/json", listing),
    read("/images/{name}/json", inspect),
    read("/images/{name}/history", history),
    read("/images/{name}/attestations", attestations),
    change("POST", "/images/prune", prune),
    change("POST", "/images/{name}/tag", tag),
    change("DELETE", "/images/{name}", remove),
    change("POST", "/commit", commit),
    read("/auth", login, method="POST"),
)
