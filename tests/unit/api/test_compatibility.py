"""docs/compatibility.md tells the truth: it lists what the API describes, and what the routes do."""

import re
from pathlib import Path

import pytest

from husk.api.edge import missing
from husk.api.routes import all_routes

ROOT = Path(__file__).parents[3]
# The operations of API version 1.55.
OPERATIONS = Path(__file__).with_name("operations.txt")
LINE = re.compile(r"^\| (GET|HEAD|POST|PUT|DELETE) \| `(\S+)` \| (works|partial \(.+\)|missing \(501\)) \|$")

Operation = tuple[str, str]


def table() -> dict[Operation, str]:
    lines = (ROOT / "docs" / "compatibility.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith(("| method", "| ---"))]
    matches = [LINE.match(row) or pytest.fail(f"not a line of the table: {row}") for row in rows]
    operations = {(match[1], match[2]): match[3] for match in matches}
    assert len(operations) == len(rows), "an operation is listed twice"
    return operations


def test_what_the_page_calls_missing_is_what_answers_501() -> None:
    page = {operation for operation, state in table().items() if state.startswith("missing")}
    assert page == {(route.method, route.pattern) for route in missing.ROUTES}


# What clients of builds and our own library use, and no description of the API has.
UNDOCUMENTED = {
    ("POST", "/grpc"),
    ("GET", "/openapi.json"),
    ("POST", "/build/cancel"),
    ("DELETE", "/exec/{id}"),
    ("POST", "/containers/run"),
    ("POST", "/swarm/backup"),
    ("POST", "/swarm/restore"),
}


def test_what_the_page_calls_working_has_a_handler() -> None:
    page = {operation for operation, state in table().items() if not state.startswith("missing")}
    handled = {(route.method, route.pattern) for route in all_routes()}
    assert page == handled - UNDOCUMENTED


def test_the_page_lists_every_operation_of_the_api() -> None:
    operations = [tuple(line.split()) for line in OPERATIONS.read_text().splitlines()]
    assert len(set(operations)) == len(operations) == 108
    assert set(table()) == set(operations)
