import socket

from husk.swarm.state.etcd.visitors import read, visitors


def test_those_at_the_other_ends_of_connections_are_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
    ):
        ports = [four.getsockname()[1], six.getsockname()[1]]
        assert visitors(read(), ports) == set(), "who listens is not connected"
        with (
            socket.create_connection(four.getsockname()[:2], source_address=("127.0.7.9", 0)),
            socket.create_connection(("::1", ports[1])),
        ):
            assert visitors(read(), ports) == {"127.0.7.9", "::1"}
            assert visitors(read(), ports[:1]) == {"127.0.7.9"}
            assert visitors(read(), ()) == set()


def test_a_table_with_more_than_is_known() -> None:
    odd = "  sl  local_address rem_address   st\n   0: \n garbage\n 1: 0100007F:0CEB 0200007F:1000 0A x\n"
    assert visitors(odd, [0xCEB]) == set()
