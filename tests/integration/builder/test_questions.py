"""`docker build --call`: what the stock client shows of a Dockerfile without building it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.building import Builds, buildkit_builds, needs_buildx
from tests.support.daemon import Daemon

pytestmark = needs_buildx

FILE = """ARG BASE=busybox
FROM $BASE AS first
# WHO is greeted
ARG WHO=you
FROM first AS last
RUN --mount=type=secret,id=token,required cat /run/secrets/token
CMD echo $WHO
"""


@pytest.fixture
def builds(daemon: Daemon, tmp_path: Path) -> Iterator[Builds]:
    with buildkit_builds(daemon, tmp_path) as builds:
        yield builds


def test_questions_about_a_dockerfile(builds: Builds, daemon: Daemon) -> None:
    before = daemon.docker("images", "-aq").stdout
    targets = builds.run(FILE, "--call=targets").stdout
    assert targets == "TARGET         DESCRIPTION\nfirst          \nlast (default) \n"
    outline = builds.run(FILE, "--call=outline").stdout
    assert "TARGET: last" in outline
    assert "WHO         you       is greeted" in outline
    assert "SECRET   REQUIRED\ntoken    true" in outline
    described = builds.run(FILE, "--call=subrequests.describe").stdout
    assert "outline " in described
    assert daemon.docker("images", "-aq").stdout == before


def test_checks_say_rule_page_and_lines_and_fail(builds: Builds) -> None:
    done = builds.run(FILE, "--check", check=False)
    assert done.returncode == 1
    assert "Check complete, 1 warning has been found!" in done.stdout
    assert "JSONArgsRecommended - https://docs.docker.com/go/dockerfile/rule/json-args-recommended/" in done.stdout
    assert "   7 | >>> CMD echo $WHO" in done.stdout
    done = builds.run(f"# check=skip=all\n{FILE}", "--check")
    assert "Check complete, no warnings found." in done.stdout
    done = builds.run(f"{FILE}RUNN\n", "--call=check,format=json", check=False)
    assert json.loads(done.stdout)["buildError"]["location"]["ranges"][0]["start"] == {"line": 8}
    done = builds.run(f"# check=error=true\n{FILE}", check=False)
    assert "lint violation found for rules: JSONArgsRecommended" in done.stderr
