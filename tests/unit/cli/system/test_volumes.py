def test_create(engine, typed):
    engine.answers("POST", "/volumes/create", {"Name": "data"})
    engine.answers("GET", "/volumes/data", {"Name": "data"})
    told = typed("volume", "create", "-o", "type=nfs", "-o", "o=addr=1.2.3.4", "--label", "a", "data")
    assert told.out == "data\n"
    asked = engine.last("POST", "/volumes/create").document
    assert asked["DriverOpts"] == {"type": "nfs", "o": "addr=1.2.3.4"} and asked["Labels"] == {"a": ""}
    refused = typed("volume", "create", "-o", "type", "data")
    assert refused.code == 1 and "expected NAME=VALUE" in refused.err
