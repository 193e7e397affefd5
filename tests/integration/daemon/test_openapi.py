"""A program asks the daemon which operations Husk has beside Docker's, and uses one as it is described."""

from tests.support.daemon import Daemon


def test_an_operation_of_ours_is_described_and_there(daemon: Daemon) -> None:
    answer = daemon.http("GET", "/openapi.json")
    assert answer.status == 200
    described = answer.json()
    assert described["info"]["version"] == daemon.http("GET", "/version").json()["Version"]
    removal = described["paths"]["/exec/{id}"]["delete"]["responses"]
    assert str(daemon.http("DELETE", "/exec/nothing").status) in removal
