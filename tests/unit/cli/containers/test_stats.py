import json

ID = "ab" * 32
LISTED = [{"Id": ID, "Names": ["/web"], "State": "running"}, {"Id": "cd" * 32, "Names": ["/old"], "State": "exited"}]
USED = {
    "read": "2026-01-01T00:00:00Z",
    "cpu_stats": {"cpu_usage": {"total_usage": 150}, "system_cpu_usage": 1100, "online_cpus": 2},
    "precpu_stats": {"cpu_usage": {"total_usage": 100}, "system_cpu_usage": 1000},
    "memory_stats": {"usage": 64 << 20, "limit": 128 << 20},
    "networks": {"eth0": {"rx_bytes": 2000, "tx_bytes": 10}},
    "pids_stats": {"current": 3},
}


def test_once(engine, typed):
    engine.answers("GET", "/containers/json", LISTED)
    engine.answers("GET", f"/containers/{ID}/stats", USED)
    assert typed("stats", "--no-stream", "-a").out.splitlines() == [
        "CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT   MEM %     NET I/O     BLOCK I/O   PIDS",
        "abababababab   web       100.00%   64MiB / 128MiB      50.00%    2kB / 10B   0B / 0B     3",
        "cdcdcdcdcdcd   old       --        -- / --             --        --          --          --",
    ]
    assert typed("stats", "--no-stream", "--format", "{{.Name}} {{.PIDs}}").out == "web 3\nold --\n"


def test_in_json(engine, typed):
    engine.answers("GET", "/containers/json", LISTED)
    engine.answers("GET", f"/containers/{ID}/stats", USED)
    first, second = [json.loads(line) for line in typed("stats", "--no-stream", "--json").out.splitlines()]
    assert (first["Name"], first["CPUPercent"], first["MemoryUsage"], first["PIDs"]) == ("web", 100.0, 64 << 20, 3)
    assert second == {"Id": "cd" * 32, "Name": "old"}


def test_one_that_ends_meanwhile(engine, typed):
    engine.answers("GET", "/containers/json", LISTED[:1])
    assert "--" in typed("stats", "--no-stream").out
