"""Definitions that clients and frontends send: a worker reads them (`llb_answerer`), with limits of time and memory."""

from contextlib import aclosing

import msgspec

from husk.builder.frontend.reading import graphs
from husk.builder.frontend.reading.dockerfiles import NO_ANSWER, Parsers
from husk.builder.frontend.reading.llb_answerer import decode_head
from husk.builder.graph.graph import Definition, Graph
from husk.builder.graph.operations import Edge
from husk.errors import InvalidParameter, NotImplementedYet, SystemFault

MODULE = "husk.builder.frontend.reading.llb_answerer"


class Definitions:
    def __init__(self, parsers: Parsers) -> None:
        self._parsers = parsers

    async def read(self, data: bytes) -> Definition:
        """The graph of an encoded definition, and the edge that is wanted; InvalidParameter for what is none."""
        if not data:
            return Definition(Graph(), None)
        graph = Graph()
        edge: Edge | None = None
        async with self._parsers.begin(MODULE) as parser, aclosing(parser.ask(data)) as pieces:
            try:
                head = await anext(pieces)
                edge = self._begin(head, graph)
                async for piece in pieces:
                    graphs.add(graph, piece)
            except (StopAsyncIteration, msgspec.DecodeError):
                raise SystemFault(NO_ANSWER) from None
        if edge is not None and edge.digest not in graph:
            raise SystemFault(NO_ANSWER)
        return Definition(graph, edge)

    def _begin(self, data: bytes, graph: Graph) -> Edge | None:
        head = decode_head(data)
        if head.wrong:
            raise NotImplementedYet(head.wrong) if head.not_yet else InvalidParameter(head.wrong)
        graph.files = head.files
        return head.edge
