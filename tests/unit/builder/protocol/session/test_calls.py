"""Failures of a client in our words, and values in headers."""

import pytest

from husk.builder.protocol.session.calls import encode_values, in_our_words
from husk.errors import InvalidParameter, NotFound, Unauthorized, Unavailable
from husk.rpc.grpc.status import DEADLINE_EXCEEDED, NOT_FOUND, UNAUTHENTICATED, UNKNOWN, GrpcError
from tests.unit.builder.protocol.session.services import calls_of


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (NOT_FOUND, NotFound),
        (UNAUTHENTICATED, Unauthorized),
        (DEADLINE_EXCEEDED, Unavailable),
        (UNKNOWN, InvalidParameter),
    ],
)
def test_codes_are_kinds(code, kind):
    with pytest.raises(kind, match="a secret: why not"), in_our_words("a secret"):
        raise GrpcError(code, "why not")


def test_values_that_are_not_ascii_are_escaped_and_so_are_their_neighbours():
    assert encode_values({"a": ["x y", "*"], "b": ["ü", "a b"]}) == {
        "a": ["x y", "*"],
        "b": ["%C3%BC", "a+b"],
        "b-encoded": ["1"],
    }


async def test_methods_are_compared_without_case():
    async with calls_of({"/moby.filesync.v1.FileSync/DiffCopy": None}) as calls:
        assert calls.serves("/moby.filesync.v1.FileSync/diffcopy")
        assert not calls.serves("/moby.filesync.v1.FileSync/TarStream")
