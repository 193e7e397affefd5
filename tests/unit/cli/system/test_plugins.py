import pytest

PLUGIN = {"Id": "p" * 20, "Name": "loki", "Enabled": True, "Config": {"Description": "logs"}}


@pytest.fixture
def plugins(engine):
    engine.answers("GET", "/plugins", [PLUGIN])
    engine.answers("GET", "/plugins/loki/json", PLUGIN)
    for word in ("enable", "disable", "set", "push"):
        engine.answers("POST", f"/plugins/loki/{word}", None)
    engine.answers("DELETE", "/plugins/loki", None)
    return engine


def test_listing(plugins, typed):
    assert typed("plugin", "ls").out.splitlines()[1].split() == ["p" * 12, "loki", "logs", "true"]


def test_verbs(plugins, typed):
    assert typed("plugin", "disable", "-f", "loki").out == "loki\n"
    assert plugins.last("POST", "/plugins/loki/disable").query["force"] == "1"
    assert typed("plugin", "enable", "--timeout", "5", "loki").out == "loki\n"
    assert plugins.last("POST", "/plugins/loki/enable").query["timeout"] == "5"
    assert typed("plugin", "set", "loki", "A=1").code == 0
    assert plugins.last("POST", "/plugins/loki/set").document == ["A=1"]
    assert typed("plugin", "rm", "-f", "loki").out == "loki\n"
