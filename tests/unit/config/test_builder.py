"""The cache of builds in `daemon.json`."""

import pytest

from husk.config import BuilderConfig, CacheRule, StepCeiling
from husk.config.builder import builder
from husk.errors import InvalidParameter


def test_nothing_said_is_the_default():
    assert builder(None) == builder({}) == BuilderConfig()


def test_how_much_stays():
    assert builder({"gc": {"defaultKeepStorage": "20GB"}}).keep == 20 << 30
    assert builder({"gc": {"enabled": False}}).collects is False


@pytest.mark.parametrize(
    "filter", [["unused-for=2200h", "type==regular"], {"unused-for": {"2200h": True}, "type": {"regular": True}}]
)
def test_rules(filter):
    policy = {"keepStorage": "1gb", "filter": filter, "all": True}
    rule = CacheRule(types=("regular",), unused_for="2200h", keep=1 << 30, all=True)
    assert builder({"gc": {"policy": [policy]}}).rules == (rule,)


def test_what_steps_may_ask_for():
    assert builder({"entitlements": {"security-insecure": True}}).insecure
    assert not builder({"entitlements": {"network-host": False}}).host_network


def test_keys_match_in_any_case():
    assert not builder({"Entitlements": {"Network-Host": False}}).host_network
    policy = {"KEEPSTORAGE": "1gb", "filter": ["type=regular"]}
    found = builder({"GC": {"Enabled": False, "defaultkeepstorage": "2gb", "Policy": [policy]}})
    assert (found.collects, found.keep, found.rules[0].keep) == (False, 2 << 30, 1 << 30)


@pytest.mark.parametrize(
    "document",
    [
        {"gc": {"enabled": "perhaps"}},
        {"gc": {"defaultKeepStorage": "much"}},
        {"gc": {"policy": [{"filter": ["regular"]}]}},
        {"gc": {"policy": [{"filter": ["colour=red"]}]}},
        {"gc": {"policy": [{"filter": ["unused-for=1h", "until=2h"]}]}},
        {"rubbish": 1},
        {"gc": 5},
        {"gc": {"policy": {"a": 1}}},
        {"gc": {"policy": ["a"]}},
        {"gc": {"enabled": True, "Enabled": False}},
        {"entitlements": {"network-hots": False}},
        {"entitlements": {"network-host": False, "NETWORK-HOST": True}},
    ],
)
def test_what_is_wrong_is_refused(document):
    with pytest.raises(InvalidParameter):
        builder(document)


def test_the_most_that_a_step_gets():
    assert builder({"limits": {"memory": "2g", "cpus": 1.5}}).limits == StepCeiling(2 << 30, 150_000)
    assert builder({"Limits": {"CPUs": 1}}).limits == StepCeiling(0, 100_000)
    assert builder({"limits": {"memory": "0", "cpus": 0}}).limits == StepCeiling(), "0 is no limit, as elsewhere"


@pytest.mark.parametrize(
    "limits",
    [{"memory": "5m"}, {"memory": "much"}, {"memory": "9999p"}, {"cpus": -1}, {"cpus": 1e9}, {"cpu": 1}],
)
def test_limits_that_are_none(limits):
    with pytest.raises(InvalidParameter):
        builder({"limits": limits})
