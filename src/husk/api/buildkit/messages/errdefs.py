"""Details of errors, by which clients show where something went wrong (`solver/errdefs/errdefs.proto`)."""

from typing import Annotated

from husk.api.buildkit.messages.codec import Message
from husk.api.buildkit.messages.ops import Op, Range, SourceInfo


class Vertex(Message):
    digest: Annotated[str, 1] = ""


class Source(Message):
    info: Annotated[SourceInfo | None, 1] = None
    ranges: Annotated[list[Range], 2] = []


class Subrequest(Message):
    name: Annotated[str, 1] = ""


class FileAction(Message):
    index: Annotated[int, 1] = 0


class Solve(Message):
    input_ids: Annotated[list[str], 1] = []
    mount_ids: Annotated[list[str], 2] = []
    op: Annotated[Op | None, 3] = None
    file: Annotated[FileAction | None, 4] = None
    description: Annotated[dict[str, str], 6] = {}
