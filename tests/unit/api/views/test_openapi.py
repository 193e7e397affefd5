"""The description of Husk's own operations: it names each of them, and has the form of OpenAPI 3.1."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from husk.api.routes import all_routes
from husk.api.views.openapi import document
from tests.unit.api.test_compatibility import OPERATIONS, UNDOCUMENTED

# BuildKit's, and in no description of Docker's API either.
OF_BUILDS = {("POST", "/grpc"), ("POST", "/build/cancel")}
WORDS_OF_A_TYPE = {"title", "description", "type", "properties", "required", "anyOf", "enum", "items", "default"}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document("1.2.3")


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, by_method in described["paths"].items():
        for method, operation in by_method.items():
            yield method.upper(), path, operation


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(found := value.get("$ref"), str):
            yield found
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_it_has_every_operation_of_ours_and_none_of_dockers(described: dict[str, Any]) -> None:
    dockers = {tuple(line.split()) for line in OPERATIONS.read_text().splitlines()}
    handled = {(route.method, route.pattern) for route in all_routes()}
    assert {(method, path) for method, path, _ in operations(described)} == handled - dockers - OF_BUILDS
    assert UNDOCUMENTED >= OF_BUILDS


def test_it_has_the_form_of_openapi(described: dict[str, Any]) -> None:
    assert re.fullmatch(r"3\.1\.\d+", described["openapi"])
    assert (described["info"]["title"], described["info"]["version"]) == ("Husk", "1.2.3")
    assert set(described) == {"openapi", "info", "servers", "paths", "components"}
    names = [operation["operationId"] for _, _, operation in operations(described)]
    assert len(names) == len(set(names))
    for method, path, operation in operations(described):
        assert method in {"GET", "POST", "DELETE"} and operation["summary"] and operation["description"]
        in_path = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))
        for parameter in operation["parameters"]:
            assert set(parameter) == {"name", "in", "required", "description", "schema"}
            assert parameter["in"] in {"path", "query", "header"} and parameter["description"]
            assert parameter["required"] or parameter["in"] != "path"
        assert any(status.startswith("2") for status in operation["responses"])
        for status, answer in operation["responses"].items():
            assert re.fullmatch(r"[2-5]\d\d", status) and answer["description"]
            assert status.startswith("2") or answer["content"]["application/json"]["schema"]["$ref"].endswith(
                "ErrorMessage"
            )


def test_what_it_refers_to_is_there_and_all_of_it_is_needed(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    named = {found.removeprefix("#/components/schemas/") for found in references(described)}
    # The end of a run is told inside of the stream, where a schema cannot say so.
    assert named | {"WaitResponse"} == set(schemas)
    for schema in schemas.values():
        assert schema["type"] == "object" and set(schema) <= WORDS_OF_A_TYPE


def test_a_run_takes_what_create_takes_and_its_input(described: dict[str, Any]) -> None:
    body = described["paths"]["/containers/run"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    names = [each["$ref"].rpartition("/")[2] for each in body["allOf"]]
    fields = set().union(*(described["components"]["schemas"][name]["properties"] for name in names))
    assert {"Image", "Cmd", "HostConfig", "NetworkingConfig", "Input"} <= fields
