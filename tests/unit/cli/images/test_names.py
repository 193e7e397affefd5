from husk.cli.images.names import whole


def test_names():
    assert whole("busybox") == "docker.io/library/busybox:latest"
    assert whole("me/app:1") == "docker.io/me/app:1"
    assert whole("host:5000/a/b:1") == "host:5000/a/b:1"
    assert whole("index.docker.io/library/a") == "docker.io/library/a:latest"
