"""Questions about a Dockerfile are answered, and nothing is built for them."""

import json
from typing import Any

import pytest

from husk.builder.jobs.failure import BuildFailed, UnknownQuestion
from tests.unit.builder.frontend.test_dockerfile_frontend import Bench, Client


@pytest.fixture
def bench() -> Any:
    return Bench()


async def test_questions_are_answered_and_nothing_is_built(bench):
    files = Client(Dockerfile="FROM missing AS a\nFROM busybox\nCMD x\n")
    for request in ("lint", "outline", "targets", "subrequests.describe"):
        result = await bench.solve(files, requestid=f"frontend.{request}")
        assert result.built == []
        assert "result.txt" in result.answer
    lint = json.loads((await bench.solve(files, requestid="frontend.lint")).answer["result.json"])
    assert "missing:latest: no such image" in lint["buildError"]["message"], "without a target all stages are looked at"
    lint = json.loads((await bench.solve(files, requestid="frontend.lint", target="1")).answer["result.json"])
    assert [one["ruleName"] for one in lint["warnings"]] == ["JSONArgsRecommended"]
    with pytest.raises(BuildFailed, match="unknown instruction"):
        await bench.solve(Client(Dockerfile="FROM busybox\nX"), requestid="frontend.targets")


async def test_a_question_that_nobody_knows(bench):
    with pytest.raises(UnknownQuestion):
        await bench.solve(Client(Dockerfile="FROM busybox"), requestid="frontend.other")
