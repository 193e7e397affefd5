import json

import pytest

SERVICES = [
    {"ID": f"s{place}", "Spec": {"Name": f"{stack}_web{place}", "Labels": {"com.docker.stack.namespace": stack}}}
    for place, stack in enumerate(("shop", "shop", "blog"))
]


@pytest.fixture
def swarm(engine):
    engine.answers("GET", "/services", SERVICES)
    for path in ("/secrets", "/configs", "/networks", "/tasks", "/nodes"):
        engine.answers("GET", path, [])
    return engine


def test_listing(swarm, typed):
    assert typed("stack", "ls").out == "NAME      SERVICES\nblog      1\nshop      2\n"
    assert json.loads(typed("stack", "ls", "--json").out) == [
        {"Name": "blog", "Services": 1},
        {"Name": "shop", "Services": 2},
    ]


def test_services_are_asked_for_by_their_label(swarm, typed):
    typed("stack", "services", "shop")
    asked = json.loads(swarm.last("GET", "/services").query["filters"])
    assert asked == {"label": ["com.docker.stack.namespace=shop"]}


def test_removing(swarm, typed):
    for service in SERVICES:
        swarm.answers("DELETE", f"/services/{service['ID']}", None)
    told = typed("stack", "rm", "--detach=false", "shop").out.splitlines()
    assert told == ["Removing service shop_web0", "Removing service shop_web1", "Removing service blog_web2"]
    swarm.answers("GET", "/services", [])
    assert typed("stack", "rm", "shop").err == "Nothing found in stack: shop\n"
    assert typed("stack", "ps", "shop").err == "nothing found in stack: shop\n"
