import pytest

from husk.client.service_spec import ServiceFile


@pytest.mark.parametrize("kind", ["secrets", "configs"])
async def test_their_life(client, engine, kind):
    known = {"ID": "k1", "Version": {"Index": 5}, "Spec": {"Name": "key", "Labels": {"a": "b"}, "Data": "aGk="}}
    engine.answers("POST", f"/{kind}/create", {"ID": "k1"})
    engine.answers("GET", f"/{kind}/k1", known)
    engine.answers("GET", f"/{kind}", [known])
    engine.answers("POST", f"/{kind}/k1/update", None)
    engine.answers("DELETE", f"/{kind}/k1", None)
    collection = getattr(client, kind)
    kept = await collection.create("key", "hi", labels={"a": "b"}, templating="golang")
    assert engine.last("POST", f"/{kind}/create").document == {
        "Name": "key",
        "Labels": {"a": "b"},
        "Data": "aGk=",
        "Templating": {"Name": "golang"},
    }
    assert (kept.name, kept.labels) == ("key", {"a": "b"})
    assert repr(kept) == f"<Service{kind[:-1].capitalize()} k1 key>"
    assert await collection.list(filters={"name": "key"}) == [kept]
    assert kept.reference() == ServiceFile(id="k1", name="key", filename="key")
    assert kept.reference("/run/k", mode=0o400).mode == 0o400
    await kept.update(labels={})
    asked = engine.last("POST", f"/{kind}/k1/update")
    assert (asked.query, asked.document["Labels"]) == ({"version": "5"}, {})
    await kept.remove()


async def test_only_configs_are_told(client, engine):
    engine.answers("GET", "/configs/k1", {"ID": "k1", "Spec": {"Data": "aGk="}})
    assert (await client.configs.get("k1")).data == b"hi"
