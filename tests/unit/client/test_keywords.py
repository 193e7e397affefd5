"""The typed keywords are the fields of the structures that hold their values, with the same types and words."""

import ast
import inspect
import textwrap

import pytest

from husk.client import keywords
from husk.client.service_spec import ServiceSpec
from husk.client.spec import ContainerSpec
from husk.library.embedded import EngineConfig, EngineOptions


def fields(of: type) -> dict[str, tuple[str, str]]:
    """Type and comment of each."""
    lines = textwrap.dedent(inspect.getsource(of)).splitlines()
    found = {}
    for node in ast.parse("\n".join(lines)).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = lines[(node.end_lineno or 0) - 1].partition("#: ")[2]
            found[node.target.id] = ast.unparse(node.annotation), said
    return found


@pytest.mark.parametrize(
    ("options", "struct"),
    [
        (keywords.ContainerOptions, ContainerSpec),
        (keywords.ServiceOptions, ServiceSpec),
        (EngineOptions, EngineConfig),
    ],
)
def test_each_field_is_a_keyword(options, struct):
    wanted = {name: of for name, of in fields(struct).items() if name not in ("image", "command")}
    assert fields(options) == wanted


def test_a_change_of_a_service_may_change_all():
    assert keywords.ServiceChanges.__annotations__.keys() == set(ServiceSpec.__struct_fields__)
