import pytest

from husk.builder.dockerfile import history
from husk.engine.model.container_config import HealthConfig


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (3_000_000, "3ms"),
        (1_000_000_000, "1s"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
        (3_661_100_000_000, "1h1m1.1s"),
    ],
)
def test_durations(nanoseconds, text):
    assert history.duration(nanoseconds) == text


def test_lists():
    assert history.quoted(["a", 'b"c', "é"]) == '["a" "b\\"c" "é"]'
    assert history.plain(["a", "b c"]) == "[a b c]"


def test_a_run_tells_its_arguments_once():
    assert history.run(["sh", "-c", "x"], [], {}) == "RUN sh -c x # buildkit"
    assert history.run(["x"], [("A", "1"), ("B", ""), ("A", "2")], {}) == "RUN |2 A=2 B= x # buildkit"


def test_an_argument_has_the_value_that_the_command_sees():
    assert history.run(["x"], [("A", "1")], {"A": "from ENV"}) == "RUN |1 A=from ENV x # buildkit"


@pytest.mark.parametrize(
    ("retries", "letter"),
    [(0, "\\x00"), (3, "\\x03"), (10, "\\n"), (39, "\\'"), (65, "A"), (127, "\\x7f"), (9**9, "\ufffd")],
)
def test_the_retries_of_a_health_check_are_a_letter(retries, letter):
    check = HealthConfig(test=["CMD", "a b"], interval=1_500_000_000, retries=retries)
    assert history.health_check(check) == f'HEALTHCHECK &{{["CMD" "a b"] "1.5s" "0s" "0s" "0s" \'{letter}\'}}'
