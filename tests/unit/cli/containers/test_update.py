def test_limits(engine, typed):
    engine.answers("GET", "/containers/web/json", {"Id": "c1", "Name": "/web"})
    engine.answers("POST", "/containers/c1/update", {"Warnings": ["no swap"]})
    told = typed("update", "-m", "64m", "--cpus", "1.5", "--pids-limit", "-1", "--restart", "on-failure:3", "web")
    assert told == (0, "web\n", "WARNING: no swap\n")
    assert engine.last("POST", "/containers/c1/update").document == {
        "Memory": 64 << 20,
        "NanoCpus": 1_500_000_000,
        "PidsLimit": -1,
        "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3},
    }


def test_what_makes_no_sense_is_refused(engine, typed):
    assert "you must provide one or more flags" in typed("update", "web").err
    assert "maximum retry count must be an integer" in typed("update", "--restart", "on-failure:x", "web").err
    assert 'invalid argument "x" for "--memory"' in typed("update", "-m", "x", "web").err
    assert engine.asked == []
