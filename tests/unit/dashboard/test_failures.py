import pytest

from husk import errors
from husk.api.http.errors import BadRequest, BodyCutOff, BodyTooLarge
from husk.dashboard.failures import Failure, failure_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NotFound("No such container: x"), 404),
        (errors.InvalidParameter("no"), 400),
        (errors.Conflict("no"), 409),
        (errors.Forbidden("no"), 403),
        (errors.Unavailable("no"), 503),
        (errors.NotImplementedYet("no"), 501),
        (errors.SystemFault("no"), 502),
        (TimeoutError(), 503),
        (BodyTooLarge(), 413),
        (BodyCutOff(), 400),
        (BadRequest("a form is expected", 415), 415),
        (ZeroDivisionError("secret"), 500),
    ],
)
def test_what_went_wrong_has_a_status(error: Exception, status: int) -> None:
    assert failure_of(error).status == status


def test_the_engines_own_words_are_told_and_those_of_a_fault_are_not() -> None:
    assert failure_of(errors.NotFound("No such container: x")).message == "No such container: x"
    assert "secret" not in failure_of(ZeroDivisionError("secret")).message


def test_every_failure_has_a_title() -> None:
    assert Failure.path("/x").title == "Not found"
    assert "GET and POST" in Failure.method(("GET", "POST")).message
    assert Failure.origin().status == 403
    assert Failure(418, "x").title
