import pytest

from husk.builder.graph.schemes import redacted


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:secret@host/x.git", "https://xxxxx:xxxxx@host/x.git"),
        ("https://me@host/x", "https://me@host/x"),
        ("git@host:x.git", "git@host:x.git"),
        ("http://[bad", "http://[bad"),
    ],
)
def test_no_passwords(address, shown):
    assert redacted(address) == shown
