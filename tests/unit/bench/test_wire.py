"""Bytes that a host sends and gets are counted once, as whole frames, and by port."""

from bench.wire import OTHER, Passed, kib_per_second, read_counters, read_interface, rules, with_other


def _counter(name: str, packets: int, size: int, table: str = "husk-bench") -> dict[str, object]:
    return {"counter": {"table": table, "name": name, "packets": packets, "bytes": size}}


def test_both_ways_of_a_port_are_added_and_frames_are_whole() -> None:
    listing = {
        "nftables": [
            {"metainfo": {}},
            _counter("input0", 2, 100),
            _counter("output0", 1, 50),
            _counter("output1", 1, 7),
            _counter("input1", 9, 9, "another"),
        ]
    }
    assert read_counters(listing, ["a", "b"]) == {"a": Passed(3, 150 + 3 * 14), "b": Passed(1, 21)}


def test_what_belongs_to_no_port_is_other() -> None:
    text = "Inter-| Receive\n face |bytes packets\n    lo: 1 1 0 0 0 0 0 0 1 1\n  eth0: 100 2 0 0 0 0 0 0 50 1 0 0\n"
    whole = read_interface(text, "eth0")
    assert whole == Passed(3, 150)
    assert with_other({"a": Passed(2, 120)}, whole)[OTHER] == Passed(1, 30)


def test_rates() -> None:
    assert kib_per_second({"a": Passed(0, 1024)}, {"a": Passed(9, 5 * 1024)}, 2.0) == {"a": 2.0}


def test_a_packet_between_two_equal_ports_is_counted_once() -> None:
    lines = [line for line in rules({"gossip": 7946}, "eth0").splitlines() if line.startswith("add rule")]
    assert len(lines) == 4 and sum("th sport != 7946 th dport 7946" in line for line in lines) == 2


def test_what_is_said_on_the_loopback_is_counted_by_itself_and_once() -> None:
    told = rules({"gossip": 7946}, "eth0", [2379])
    lines = [line for line in told.splitlines() if "local0" in line]
    assert lines[0] == "add counter inet husk-bench local0" and len(lines) == 3
    assert all(' output oifname "lo" ' in line for line in lines[1:])
    listing = {"nftables": [_counter("output0", 1, 50), _counter("local0", 2, 100)]}
    assert read_counters(listing, ["store"], ("local",)) == {"store": Passed(2, 100 + 2 * 14)}
    assert read_counters(listing, ["gossip"]) == {"gossip": Passed(1, 50 + 14)}
