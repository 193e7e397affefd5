from husk.cli.images.listings import result, step


def test_history(engine, typed):
    steps = [
        {"Id": "sha256:" + "ab" * 32, "Created": 0, "CreatedBy": "RUN " + "x" * 50, "Size": 2000, "Comment": "c"},
        {"Id": "<missing>", "Created": 0, "CreatedBy": "CMD", "Size": 0},
    ]
    engine.answers("GET", "/images/a/json", {"Id": "sha256:1"})
    engine.answers("GET", "/images/sha256:1/history", steps)
    first, second, third = typed("history", "a").out.splitlines()
    assert first.split() == ["IMAGE", "CREATED", "CREATED", "BY", "SIZE", "COMMENT"]
    assert second.startswith("abababababab") and "…" in second and third.startswith("<missing>")
    assert typed("history", "-q", "--no-trunc", "a").out.splitlines()[0] == "sha256:" + "ab" * 32
    assert typed("history", "--format", "{{.Size}}", "--human=false", "a").out == "2000\n0\n"


def test_a_step_as_numbers():
    assert step({"Id": "x", "Created": 86400, "Size": 5}, 0, human=False, whole=True)["CreatedAt"].startswith(
        "1970-01-02"
    )


def test_search(engine, typed):
    found = [
        {"name": "b", "description": "of\nlines", "star_count": 1},
        {"name": "a", "description": "", "star_count": 5, "is_official": True},
    ]
    engine.answers("GET", "/images/search", found)
    assert typed("search", "--format", "{{.Name}} {{.StarCount}} {{.IsOfficial}}", "x").out == "a 5 [OK]\nb 1 \n"
    assert result(found[0], whole=False)["Description"] == "of lines"


def test_prune(engine, typed):
    engine.answers("POST", "/images/prune", {"ImagesDeleted": [{"Untagged": "a:1"}, {"Deleted": "sha256:1"}]})
    assert typed("image", "prune", "-af").out == "Deleted Images:\nUntagged: a:1\nDeleted: sha256:1\n\n"
    assert '"dangling":["false"]' in engine.last("POST", "/images/prune").query["filters"]
