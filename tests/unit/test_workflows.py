"""Files for GitHub: workflows run nothing that can change under its name, and commands that are there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def steps(workflow: Path) -> Iterator[dict[str, Any]]:
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_a_digest_and_the_release_that_it_is(workflow: Path) -> None:
    used = re.findall(r"uses: *(.*)", workflow.read_text())
    assert (
        used and [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    )


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_read_unless_a_job_needs_more(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_targets_and_scripts_that_are_run_are_there(workflow: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for step in steps(workflow):
        command = step.get("run", "")
        assert set(re.findall(r"(?:^|&& )make ([a-z-]+)", command)) <= targets
        for script in re.findall(r"(?<![\w./])(?:scripts|\.ci)/[\w-]+", command):
            assert (ROOT / script).is_file(), script


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.name)
def test_a_form_has_what_github_asks_of_one(form: Path) -> None:
    found = yaml.safe_load(form.read_text())
    if form.name == "config.yml":
        assert set(found) <= {"blank_issues_enabled", "contact_links"}
        return
    assert found["name"] and found["description"]
    named = [part["id"] for part in found["body"] if part["type"] != "markdown"]
    assert named and len(named) == len(set(named))
    for part in found["body"]:
        assert part["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert part["attributes"].get("label") or part["type"] == "markdown"


def test_everything_has_an_owner() -> None:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text().splitlines()
    rules = [line.split() for line in lines if line and not line.startswith("#")]
    assert rules[0][0] == "*"
    assert all(re.fullmatch(r"@[\w-]+(?:/[\w-]+)?", owner) for _, *owners in rules for owner in owners)
