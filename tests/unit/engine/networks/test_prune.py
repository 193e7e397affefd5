"""Networks that nobody uses."""

from typing import Any

import pytest

from husk.engine.model.container import Draft
from husk.engine.model.filters import Filters
from husk.engine.model.network import Network
from husk.engine.networks.live import LiveNetwork
from husk.engine.networks.prune import prune
from husk.errors import Conflict, HuskError, NotFound, SystemFault
from tests.unit.engine.records import container

OLD = "2020-01-01T00:00:00Z"


def live(name: str, *, used: bool = False, **fields: Any) -> LiveNetwork:
    made = LiveNetwork(Network(id=name, name=name, **{"created": OLD, "driver": "bridge"} | fields))
    if used:
        made.members["box"] = Draft(container("box"))
    return made


async def test_what_is_used_built_in_a_template_younger_or_not_meant_stays() -> None:
    asked: list[str] = []

    async def remove(id: str) -> None:
        asked.append(id)

    lives = [
        live("free"),
        live("busy", used=True),
        live("bridge"),
        live("template", config_only=True),
        live("young", created="2999-01-01T00:00:00Z"),
        live("kept", labels={"keep": "1"}),
    ]
    assert await prune(lives, Filters({"label!": ["keep"], "until": ["2021-01-01T00:00:00Z"]}), remove) == ["free"]
    assert asked == ["free"]


@pytest.mark.parametrize("refusal", [Conflict("in use"), NotFound("gone"), SystemFault("no kernel")])
async def test_one_that_cannot_go_stops_no_other(refusal: HuskError, caplog: pytest.LogCaptureFixture) -> None:
    async def remove(id: str) -> None:
        if id == "first":
            raise refusal

    assert await prune([live("first"), live("second")], Filters({}), remove) == ["second"]
    assert ("first is not pruned" in caplog.text) == isinstance(refusal, SystemFault)
