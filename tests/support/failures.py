"""A pytest plugin that writes what failed to a file, for `scripts/run-tests`: node ids with the text of the failure."""

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures-to", metavar="FILE", help="write failed tests and what they said to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    target = config.getoption("--failures-to")
    # Workers of xdist hand their reports to the process that started them; that one writes.
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(Path(target)))


class _Recorder:
    def __init__(self, target: Path) -> None:
        self.target = target
        self.failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            sections = "".join(f"\n--- {name} ---\n{content}" for name, content in report.sections)
            self.failures.setdefault(report.nodeid, report.longreprtext + sections)

    def pytest_sessionfinish(self) -> None:
        self.target.write_text(json.dumps(self.failures))
