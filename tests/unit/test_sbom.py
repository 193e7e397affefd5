"""`scripts/sbom`: the list of what Husk is made of has the form of CycloneDX, and all that the lock has."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import husk

ROOT = Path(__file__).resolve().parents[2]
PURL = re.compile(r"pkg:(?:pypi|npm)/(?:%40[\w.-]+/)?[\w.-]+@[\w.+!-]+")


def made() -> bytes:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "sbom"], check=True, capture_output=True, timeout=60
    ).stdout


@pytest.fixture(scope="module")
def sbom() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made())
    return found


def test_it_has_the_form_of_cyclonedx(sbom: dict[str, Any]) -> None:
    assert (sbom["bomFormat"], sbom["specVersion"], sbom["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sbom["serialNumber"])
    assert set(sbom) == {
        "bomFormat",
        "specVersion",
        "serialNumber",
        "version",
        "metadata",
        "components",
        "dependencies",
    }
    for each in sbom["components"]:
        assert (each["type"], each["bom-ref"]) == ("library", each["purl"])
        assert PURL.fullmatch(each["purl"]) and each["purl"].endswith(f"@{each['version']}")
        assert each["scope"] in {"required", "optional", "excluded"}
        for digest in each.get("hashes", []):
            assert digest["alg"] == "SHA-512" and re.fullmatch(r"[0-9a-f]{128}", digest["content"])


def test_it_is_of_this_version_and_has_all_that_the_lock_has(sbom: dict[str, Any]) -> None:
    own = sbom["metadata"]["component"]
    assert (own["type"], own["name"], own["version"]) == ("application", "husk", husk.__version__)
    pins = re.findall(r"^([\w.-]+)==([\w.+!-]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    listed = [(each["name"], each["version"]) for each in sbom["components"] if each["purl"].startswith("pkg:pypi/")]
    assert sorted(listed) == sorted(pins)
    assert "@xterm/xterm" in {each["name"] for each in sbom["components"]}


def test_what_needs_what_is_whole(sbom: dict[str, Any]) -> None:
    own = sbom["metadata"]["component"]["bom-ref"]
    refs = [each["bom-ref"] for each in sbom["components"]]
    needs = {each["ref"]: each["dependsOn"] for each in sbom["dependencies"]}
    assert len(refs) == len(set(refs)) and set(needs) == {own, *refs}
    reached, left = set(), [own]
    while left:
        reached.add(each := left.pop())
        left += [found for found in needs[each] if found not in reached]
    shipped = {each["bom-ref"] for each in sbom["components"] if each["scope"] != "excluded"}
    assert reached == {own, *shipped}


def test_the_same_tree_gives_the_same_bytes() -> None:
    assert made() == made()
