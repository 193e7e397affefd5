from husk.client.registry_data import RegistryData


def test_what_a_registry_says():
    platforms = [{"os": "linux", "architecture": "amd64"}, {"os": "linux", "architecture": "arm", "variant": "v7"}]
    data = RegistryData("a:1", {"Descriptor": {"digest": "d1"}, "Platforms": platforms})
    assert (data.id, repr(data)) == ("d1", "<RegistryData a:1 d1>")
    assert data.platforms == ["linux/amd64", "linux/arm/v7"]
    assert data.has_platform("linux/arm/v7")
    assert not data.has_platform("linux/arm64")


def test_it_may_say_little():
    assert RegistryData("a", {"Descriptor": {"digest": "d1"}, "Platforms": None}).platforms == []
