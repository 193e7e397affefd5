"""A test against a real service: pytest with the plugin of `pip install husk[pytest]`, and no daemon.

sudo pytest examples/test_service.py
"""

from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from husk.pytest_plugin import Service, StartService


@pytest.fixture(scope="module")
def web(husk_container: StartService) -> Iterator[Service]:
    """A web server with one page; the tests of this module share it."""
    page = "mkdir /www && echo hello > /www/index.html && exec httpd -f -p 80 -h /www"
    with husk_container("busybox", ["sh", "-c", page], wait_for_port=80) as service:
        yield service


def test_the_page(web: Service) -> None:
    with urlopen(f"http://{web.ip}:80/") as answer:
        assert answer.read() == b"hello\n"


def test_what_is_in_the_container(web: Service) -> None:
    assert web.exec("cat /www/index.html").stdout == b"hello\n"
    web.put("/www/new.html", b"new")
    with urlopen(f"http://{web.ip}:80/new.html") as answer:
        assert answer.read() == b"new"
