import json

FOUND = {
    "LayersSize": 3000,
    "Images": [
        {
            "Id": "sha256:" + "a" * 64,
            "Size": 2000,
            "SharedSize": 500,
            "Containers": 1,
            "Created": 1,
            "RepoTags": ["a:1"],
        },
        {"Id": "sha256:" + "b" * 64, "Size": 1500, "SharedSize": -1, "Containers": 0, "Created": 1},
    ],
    "Containers": [
        {"Id": "c" * 64, "State": "running", "SizeRw": 10, "Created": 1, "Names": ["/web"]},
        {"Id": "d" * 64, "State": "exited", "SizeRw": 30, "Created": 1, "Names": ["/old"]},
    ],
    "Volumes": [{"Name": "v", "UsageData": {"Size": 100, "RefCount": 0}}, {"Name": "w", "UsageData": {"Size": -1}}],
    "BuildCache": [
        {"ID": "e" * 25, "Type": "regular", "Size": 50},
        {"ID": "f", "Size": 9, "Shared": True, "InUse": True},
    ],
}


def test_as_docker_counts(engine, typed):
    engine.answers("GET", "/system/df", FOUND)
    assert typed("df").out.splitlines() == [
        "TYPE            TOTAL     ACTIVE    SIZE      RECLAIMABLE",
        "Images          2         1         3kB       1.5kB (50%)",
        "Containers      2         1         40B       30B (75%)",
        "Local Volumes   2         0         100B      100B (100%)",
        "Build Cache     2         1         50B       50B",
    ]
    assert typed("df", "--format", "{{.Type}}").out.startswith("Images\n")
    assert json.loads(typed("df", "--json").out) == FOUND


def test_in_detail(engine, typed):
    engine.answers("GET", "/system/df", FOUND)
    told = typed("df", "-v").out
    assert "Images space usage:" in told and "VOLUME NAME" in told and "Build cache usage: 59B" in told


def test_nothing_there(engine, typed):
    engine.answers("GET", "/system/df", {})
    assert typed("system", "df").out.splitlines()[1] == "Images          0         0         0B        0B"
