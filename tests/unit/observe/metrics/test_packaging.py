"""The dashboard and the alert rules name only metrics that there are, and what Prometheus understands."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from husk.observe.metrics.facts import FactCollector, gather
from husk.observe.metrics.families import Families
from husk.observe.metrics.requests import RequestCounts
from tests.unit.observe.metrics.played_engine import played

PACKAGING = Path(__file__).parents[4] / "packaging"
DASHBOARD, RULES = PACKAGING / "grafana-dashboard.json", PACKAGING / "prometheus-rules.yml"
METRIC = re.compile(r"\b(?:husk|engine_daemon|builder|process)_[a-z_]+\b")


def told(tmp_path: Path) -> set[str]:
    """Every name of a series that there can be."""
    families, engine = Families(), played(tmp_path, [])
    RequestCounts(families)
    facts = FactCollector(engine, 10)
    families.registry.register(facts)
    facts.look(gather(engine))
    names = set()
    for line in generate_latest(families.registry).decode().splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            names |= {f"{name}_{part}" for part in ("bucket", "count", "sum")} if kind == "histogram" else {name}
    return names


def dashboard_expressions() -> list[str]:
    document = json.loads(DASHBOARD.read_text())
    panels = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    return [*panels, *(str(each["query"]) for each in document["templating"]["list"])]


def rule_expressions() -> list[str]:
    document = yaml.safe_load(RULES.read_text())
    return [rule["expr"] for group in document["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("expressions", [dashboard_expressions, rule_expressions])
def test_every_metric_that_is_named_exists(expressions, tmp_path: Path) -> None:
    named = {name for expression in expressions() for name in METRIC.findall(expression)}
    assert len(named) > 8
    assert named - told(tmp_path) == set()


def test_panels_have_names_and_places_of_their_own() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    for key in (lambda panel: panel["id"], lambda panel: panel["title"], lambda panel: str(panel["gridPos"])):
        assert len({key(panel) for panel in panels}) == len(panels)


def test_prometheus_understands_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: scripts/setup --test brings it")
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
