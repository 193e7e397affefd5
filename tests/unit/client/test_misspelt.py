import pytest

from husk.client.misspelt import require_known
from husk.client.spec import ContainerSpec
from husk.errors import InvalidParameter


def test_a_keyword_that_was_meant():
    require_known(["memory"], ["memory"], "a container", "ContainerSpec")
    with pytest.raises(InvalidParameter) as raised:
        require_known(["memry", "zzz"], ["memory", "name"], "a container", "ContainerSpec")
    said = "a container knows no memry (did you mean memory?), zzz. ContainerSpec lists what it knows"
    assert raised.value.message == said


async def test_nothing_is_asked_with_a_misspelt_keyword(client, engine):
    for make in (
        client.run("busybox", memry="1m"),
        client.containers.create(ContainerSpec(image="busybox"), memry="1m"),
        client.services.create("busybox", memry="1m"),
        client.images.build(path=".", tagg="x"),
    ):
        with pytest.raises(InvalidParameter, match=r"memry|tagg"):
            await make
    assert engine.asked == []
