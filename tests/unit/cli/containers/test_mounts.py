import os

import pytest

from husk.cli.containers.mounts import binds, mount, tmpfs
from husk.client.spec import Mount
from husk.errors import InvalidParameter


def test_volumes():
    named, nameless = binds(["/a:/b:ro", "cache:/c", "./here:/d", "/just"])
    assert named == ["/a:/b:ro", "cache:/c", f"{os.getcwd()}/here:/d"]
    assert nameless == {"/just": {}}


def test_what_is_too_short_to_be_taken_apart_is_a_place_as_for_dockers_client():
    assert binds([":", "::", "/a"]) == ([], {":": {}, "::": {}, "/a": {}})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("", "invalid empty volume spec"),
        (":/b", "invalid spec: :/b: empty section between colons"),
        ("/a:", "invalid spec: /a:: empty section between colons"),
        ("/a::ro", "invalid spec: /a::ro: empty section between colons"),
        ("/a:/b:", "invalid spec: /a:/b:: empty section between colons"),
        ("/a:/b:ro:z", "invalid spec: /a:/b:ro:z: too many colons"),
        ("/a:/b:ro:", "invalid spec: /a:/b:ro:: too many colons"),
    ],
)
def test_volumes_that_are_none_are_refused_in_dockers_words(wrong, words):
    with pytest.raises(InvalidParameter) as refused:
        binds([wrong])
    assert refused.value.message == words


def test_memory():
    assert tmpfs(["/run", "/tmp:rw,size=64m"]) == {"/run": "", "/tmp": "rw,size=64m"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("type=bind,src=/a,dst=/b,ro", Mount(target="/b", source="/a", read_only=True)),
        ("source=v,target=/v,readonly=false", Mount(target="/v", source="v", type="volume")),
        (
            "type=tmpfs,destination=/t,tmpfs-size=64m,tmpfs-mode=1777",
            Mount(target="/t", type="tmpfs", options={"TmpfsOptions": {"SizeBytes": 64 << 20, "Mode": 0o1777}}),
        ),
        (
            "type=volume,src=v,dst=/v,volume-nocopy,volume-label=a=b,volume-opt=o=x,volume-driver=local,volume-subpath=s",
            Mount(
                target="/v",
                source="v",
                type="volume",
                options={
                    "VolumeOptions": {
                        "NoCopy": True,
                        "Labels": {"a": "b"},
                        "DriverConfig": {"Options": {"o": "x"}, "Name": "local"},
                        "Subpath": "s",
                    }
                },
            ),
        ),
        (
            "type=bind,src=/a,dst=/b,bind-propagation=rshared,bind-recursive=disabled,consistency=cached",
            Mount(
                target="/b",
                source="/a",
                options={"BindOptions": {"Propagation": "rshared", "NonRecursive": True}, "Consistency": "cached"},
            ),
        ),
        ('type=bind,"src=/a,b",dst=/c', Mount(target="/c", source="/a,b")),
        (
            "type=image,src=i,dst=/i,image-subpath=s",
            Mount(target="/i", source="i", type="image", options={"ImageOptions": {"Subpath": "s"}}),
        ),
    ],
)
def test_mounts(text, found):
    assert mount(text) == found


@pytest.mark.parametrize(
    "wrong",
    [
        "type=bind",
        "type=x,dst=/a",
        "colour=red,dst=/a",
        "dst=/a,ro=x",
        "dst=/a,tmpfs-mode=9",
        "dst=/a,bind-recursive=x",
    ],
)
def test_what_is_no_mount(wrong):
    with pytest.raises(InvalidParameter, match="--mount"):
        mount(wrong)
