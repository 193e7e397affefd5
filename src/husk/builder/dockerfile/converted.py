"""The result of converting a Dockerfile: operations, an image, and what clients are told of the file."""

from msgspec import Struct

from husk.builder.dockerfile.rules import Span, Warning
from husk.builder.graph.graph import Graph, Location
from husk.builder.graph.operations import Edge
from husk.engine.model.image import ImageConfig


class UsedArg(Struct, frozen=True):
    name: str
    value: str
    description: str
    span: Span


class ShownStep(Struct, frozen=True, gc=False):
    """An instruction that is carried out, as a reader of the file knows it, and what it became.

    There may be thousands: the collector of garbage need not look at them, for they are in no circle.
    """

    code: str
    keyword: str
    location: Location
    stage: int = 0
    written: str = ""  # what it does: two with the same text behind the same step do the same
    result: Edge | None = None  # the file system behind it
    vertices: tuple[str, ...] = ()  # those that are there for it
    note: str = ""  # what its user is told
    from_trigger: bool = False
    from_context: bool = False  # it takes files of the build context
    base: str = ""  # of FROM: the id of the image
    base_stage: int | None = None  # or the number of a stage


class Converted(Struct, frozen=True):
    graph: Graph
    root: Edge | None
    image: ImageConfig
    warnings: list[Warning]
    steps: list[ShownStep] = []
    args: list[UsedArg] = []
    scans: dict[str, Edge | None] = {}  # what an SBOM is to tell of besides, by name
