from husk.builder.frontend.reading import graphs, llb_answerer
from husk.builder.frontend.reading.llb_answerer import Answerer, DefinitionHead, decode_head
from husk.builder.graph import llb_write, ops
from husk.builder.graph.graph import Graph
from tests.unit.builder.solver.solving import chain


def test_a_graph_comes_out_as_it_went_in():
    graph, edge = chain("a", "b")
    head, *pieces = Answerer().turn(llb_write.definition(graph, edge).encode())
    read = Graph()
    for piece in pieces:
        graphs.add(read, piece)
    assert [vertex.name for vertex in read] == ["image", "a", "b"]
    wanted = decode_head(head).edge
    assert wanted is not None and read[wanted.digest].name == "b"


def test_what_is_wrong_is_said():
    (head,) = Answerer().turn(b"\xff")
    assert "cannot be read" in decode_head(head).wrong
    last = ops.Op(inputs=[ops.Input("sha256:x")], passthrough=ops.PassthroughOp("x")).encode()
    (head,) = Answerer().turn(ops.Definition(definition=[last, ops.Op(inputs=[ops.Input("a")]).encode()]).encode())
    assert decode_head(head) != DefinitionHead()


def test_what_every_definition_needs_is_made_once():
    llb_answerer.warm_up()
