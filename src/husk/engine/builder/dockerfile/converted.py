"""What becomes of a Dockerfile: operations, an image, and what is told of the file."""

from msgspec import Struct

from husk.engine.builder.dockerfile.errors import Span
from husk.engine.builder.dockerfile.rules import Warning
from husk.engine.builder.graph import Graph, Location
from husk.engine.builder.operations import Edge
from husk.engine.model.image import ImageConfig


class UsedArg(Struct, frozen=True):
    name: str
    value: str
    description: str
    span: Span


class ShownStep(Struct, frozen=True):
    """An instruction that is carried out, as a reader of the file knows it."""

    code: str
    location: Location


class Converted(Struct, frozen=True):
    graph: Graph
    root: Edge | None
    image: ImageConfig
    warnings: list[Warning]
    steps: list[ShownStep] = []
    args: list[UsedArg] = []
    scans: dict[str, Edge | None] = {}  # what an SBOM is to tell of besides, by name
