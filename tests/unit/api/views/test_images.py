"""Images as clients of each version see them."""

from husk.api.versioning import Version
from husk.api.views import images
from husk.engine.model.container_config import ContainerConfig
from tests.unit.api.fake_engine import image


def test_an_image_without_names_is_none_only_for_old_clients() -> None:
    assert images.summary(image(), [], [], Version(1, 42)).repo_tags == ["<none>:<none>"]
    assert images.summary(image(), [], [], Version(1, 43)).repo_tags == []


def test_an_unreadable_date_does_not_break_the_list() -> None:
    assert images.summary(image(created="long ago"), [], [], Version(1, 50)).created == 0


def test_an_image_says_nothing_about_containers_to_new_clients() -> None:
    old = images.inspect(image(config=ContainerConfig(cmd=["sh"])), [], [], Version(1, 49))
    new = images.inspect(image(config=ContainerConfig(cmd=["sh"])), [], [], Version(1, 50))
    assert "Hostname" in old.config
    assert "Hostname" not in new.config
    assert new.config["Cmd"] == ["sh"]


def test_what_an_image_does_not_say_is_null_and_later_left_out() -> None:
    always = {"Cmd": None, "Entrypoint": None, "Env": None, "Labels": None, "OnBuild": None, "Volumes": None}
    before = images.inspect(image(config=ContainerConfig()), [], [], Version(1, 51))
    assert before.config == {**always, "User": "", "WorkingDir": ""}
    assert images.inspect(image(config=ContainerConfig()), [], [], Version(1, 52)).config == {}
