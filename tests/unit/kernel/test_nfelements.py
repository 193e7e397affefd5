"""Keys of elements are laid out as the kernel's registers are: each part begins at a multiple of four bytes."""

from husk.kernel import nfelements
from husk.network.ports import PublishedPort
from husk.network.rules import elements_of


def test_parts_are_padded():
    assert nfelements.protocol("tcp") == b"\x06\0\0\0"
    assert nfelements.service(8080) == b"\x1f\x90\0\0"
    assert nfelements.address("10.0.0.2") == b"\x0a\0\0\x02"
    assert len(nfelements.address("fd00::2")) == 16


def test_a_port_has_its_elements_in_the_table_of_its_family_and_none_where_rules_cannot_lead():
    elements = elements_of(
        "t",
        [
            PublishedPort("tcp", "0.0.0.0", 8080, "10.0.0.2", 80),
            PublishedPort("tcp", "::1", 8080, "fd00::2", 80),
            PublishedPort("tcp", "::", 8080, "10.0.0.2", 80),
            PublishedPort("tcp", "0.0.0.0", 0, "10.0.0.2", 80),
        ],
    )
    assert [(one.family, one.where, len(one.key), len(one.data)) for one in elements] == [
        ("ip", "published", 8, 0),
        ("ip", "ports", 8, 8),
        ("ip6", "bound_published", 24, 0),
        ("ip6", "bound_ports", 24, 20),
        ("ip", "opened", 12, 0),
    ]
