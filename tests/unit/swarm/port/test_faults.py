import pytest

from husk.errors import (
    Conflict,
    Forbidden,
    HuskError,
    InvalidParameter,
    NotFound,
    NotImplementedYet,
    SystemFault,
    Unauthorized,
    Unavailable,
)
from husk.rpc.grpc.status import DEADLINE_EXCEEDED, UNKNOWN, GrpcError
from husk.swarm.port.faults import TooMany, from_wire, to_wire

KINDS = (InvalidParameter, Unauthorized, Forbidden, NotFound, Conflict, NotImplementedYet, Unavailable, TooMany)


@pytest.mark.parametrize("kind", [*KINDS, SystemFault])
def test_an_error_is_the_same_at_the_other_end(kind: type[HuskError]) -> None:
    back = from_wire(to_wire(kind("why")))
    assert type(back) is kind and back.message == "why"


def test_errors_of_the_way_itself() -> None:
    assert type(from_wire(GrpcError(DEADLINE_EXCEEDED, "late"))) is Unavailable
    assert type(from_wire(GrpcError(UNKNOWN, "what"))) is SystemFault
