from husk.config import Config, RuntimeConfig
from husk.engine.reloaded import told


def test_settings_are_told_in_dockerds_words() -> None:
    config = Config(
        labels=("a=1",),
        log_level="debug",
        registry_mirrors=("http://m",),
        shutdown_timeout=7.0,
        runtimes={"mine": RuntimeConfig("/usr/bin/mine", ())},
    )
    found = told(config)
    assert (found["labels"], found["debug"], found["registry-mirrors"]) == ('["a=1"]', "true", '["http://m"]')
    assert (found["shutdown-timeout"], found["runtimes"]) == ("7", "mine:/usr/bin/mine")


def test_containers_that_are_not_stopped_at_the_end_have_no_time_for_it() -> None:
    assert told(Config(shutdown_timeout=None))["shutdown-timeout"] == "-1"
