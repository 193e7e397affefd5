"""The worker that reads definitions: a client's bytes in, a graph out, one operation after the other."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from husk.builder.frontend.reading import graphs
from husk.builder.graph import llb_read, ops
from husk.builder.graph.graph import SourceFile
from husk.builder.graph.operations import Edge
from husk.errors import HuskError, NotImplementedYet


class DefinitionHead(Struct, frozen=True):
    """The part before the operations: which of them is wanted, and the files they come from; or what is wrong."""

    edge: Edge | None = None
    files: list[SourceFile] = []
    wrong: str = ""
    not_yet: bool = False


encode = msgspec.msgpack.Encoder().encode
decode_head = msgspec.msgpack.Decoder(DefinitionHead).decode


class Answerer:
    """Each question is a definition."""

    def turn(self, question: bytes) -> Iterator[bytes]:
        try:
            # One that makes nothing is no bytes at all, and there is no question without any.
            read = llb_read.definition(ops.Definition.decode(question, most=llb_read.MOST_VALUES))
        except HuskError as error:
            yield encode(DefinitionHead(wrong=error.message, not_yet=isinstance(error, NotImplementedYet)))
        else:
            yield encode(DefinitionHead(read.edge, read.graph.files))
            yield from graphs.pieces(read.graph)


def warm_up() -> None:
    """Read one: the descriptors of messages are made at the first."""
    source = ops.Op(source=ops.SourceOp("docker-image://a")).encode()
    last = ops.Op(inputs=[ops.Input(llb_read.digest_of(source))]).encode()
    for _ in Answerer().turn(ops.Definition(definition=[source, last]).encode()):
        pass
