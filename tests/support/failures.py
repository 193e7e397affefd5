"""A pytest plugin for `scripts/run-tests`: it names a test that fails at once, and writes what failed to a file, as ids
of tests with the text of the failure."""

import json
from pathlib import Path

import pytest

# Letters of what a failure says that stand beside its name.
_MOST = 400


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures-to", metavar="FILE", help="write failed tests and what they said to FILE, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    target = config.getoption("--failures-to")
    # Workers of xdist hand their reports to the process that started them; that one writes.
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(Path(target), config))


class _Recorder:
    def __init__(self, target: Path, config: pytest.Config) -> None:
        self.target = target
        self.config = config
        self.failures: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._name(report)
            sections = "".join(f"\n--- {name} ---\n{content}" for name, content in report.sections)
            self.failures.setdefault(report.nodeid, report.longreprtext + sections)

    def _name(self, report: pytest.TestReport) -> None:
        """The run goes on for a quarter of an hour, and whoever looks at it would see an F."""
        writer = self.config.get_terminal_writer()
        writer.line()
        crash = getattr(report.longrepr, "reprcrash", None)
        said = f": {' '.join(crash.message.split())[:_MOST]}" if crash else ""
        writer.line(f"failed: {report.nodeid} ({report.when}){said}", flush=True)

    def pytest_sessionfinish(self) -> None:
        self.target.write_text(json.dumps(self.failures))
