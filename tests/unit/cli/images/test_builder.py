def test_prune(engine, typed):
    engine.answers("POST", "/build/prune", {"CachesDeleted": ["x"], "SpaceReclaimed": 5})
    told = typed("builder", "prune", "-f", "--keep-storage", "1g", "--filter", "until=1h")
    assert told.out == "Deleted build cache objects:\nx\n\nTotal reclaimed space: 5B\n"
    assert engine.last("POST", "/build/prune").query["reserved-space"] == str(1 << 30)
