"""Images: those with a name, and those that containers are of; what is here is only named."""

from husk.cli.migrate.images import bring_images

ONE = {"Id": "sha256:1", "RepoTags": ["mine:1", "mine:2"], "Size": 5}
NAMELESS = {"Id": "sha256:2", "RepoTags": ["<none>:<none>"], "Size": 6}


async def test_what_is_not_here_comes_over(engines, capfd) -> None:
    engines.there.answers("GET", "/images/json", [NAMELESS, ONE])
    engines.there.answers("GET", "/images/get", b"archive")
    engines.here.answers("POST", "/images/load", {"stream": "Loaded image: mine:1"})
    engines.here.answers("GET", "/images/mine:1/json", {"Id": "sha256:9", "RootFS": {"Layers": ["other"]}})
    await bring_images(engines.source, engines.target, set(), engines.report)
    assert engines.there.last("GET", "/images/get").all["names"] == ["mine:1", "mine:2"]
    assert engines.here.last("POST", "/images/load").body == b"archive"
    assert capfd.readouterr().out == "image mine:1\n"


async def test_what_is_here_gets_the_names_that_it_lacks(engines, capfd) -> None:
    engines.there.answers("GET", "/images/json", [ONE])
    engines.here.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1", "RepoTags": ["mine:1"]})
    engines.here.answers("POST", "/images/sha256:1/tag", {})
    await bring_images(engines.source, engines.target, set(), engines.report)
    assert engines.here.last("POST", "/images/sha256:1/tag").query["tag"] == "2"
    assert capfd.readouterr().out == "image mine:1: is here\n"


async def test_the_same_layers_under_the_same_name_are_the_same_image(engines, capfd) -> None:
    engines.there.answers("GET", "/images/json", [ONE])
    engines.there.answers("GET", "/images/sha256:1/json", {"Id": "sha256:1", "RootFS": {"Layers": ["a"]}})
    named = {"Id": "sha256:9", "RootFS": {"Layers": ["a"]}, "RepoTags": ONE["RepoTags"]}
    engines.here.answers("GET", "/images/mine:1/json", named)
    await bring_images(engines.source, engines.target, set(), engines.report)
    assert capfd.readouterr().out == "image mine:1: is here\n"


async def test_one_without_a_name_that_a_container_is_of_and_one_that_fails(engines, capfd) -> None:
    engines.there.answers("GET", "/images/json", [NAMELESS])
    await bring_images(engines.source, engines.target, {"sha256:2"}, engines.report)
    assert engines.report.failures == 1 and "image 2: FAILED" in capfd.readouterr().out
