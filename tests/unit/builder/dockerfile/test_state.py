"""A stage while it is carried out: its variables, the names of its steps, and an image that shares nothing."""

import pytest

from husk.builder.dockerfile.rules import Span
from husk.builder.dockerfile.stages import StagePlan
from husk.builder.dockerfile.state import DEFAULT_PATH, StageState, copy_of, empty_image, shown
from husk.builder.dockerfile.words import WordRules
from husk.engine.model.container_config import ContainerConfig
from husk.engine.model.image import ImageConfig
from husk.registry.manifest import Platform

ARM = Platform("arm", "linux", "v7")


def state(name: str = "", total: int = 0, **config: object) -> StageState:
    image = ImageConfig(config=ContainerConfig(**config))  # type: ignore[arg-type]
    return StageState(StagePlan(name, "busybox", Span(1, 1)), None, ARM, image, WordRules(), total=total)


def test_a_stage_without_settings_has_defaults() -> None:
    stage = state()
    assert (stage.directory, stage.shell) == ("/", ["/bin/sh", "-c"])
    stage.configure(**{"working_dir": "/w", "shell": ["bash"]})
    assert (stage.directory, stage.shell) == ("/w", ["bash"])


def test_a_variable_takes_the_place_of_the_one_before() -> None:
    stage = state(env=["A=1", "AB=2"])
    stage.set_env("A", "x=y")
    stage.set_env("C", "")
    assert stage.config.env == ["A=x=y", "AB=2", "C="]
    assert stage.environment() == ["A=x=y", "C="]


@pytest.mark.parametrize(
    ("name", "total", "platform", "said"),
    [
        ("", 3, False, "[1/3] RUN x"),
        ("build", 12, False, "[build  1/12] RUN x"),
        ("build", 3, True, "[linux/arm/v7 build 1/3] RUN x"),
        ("build", 0, True, "RUN x"),
    ],
)
def test_the_names_of_steps_are_counted(name: str, total: int, platform: bool, said: str) -> None:
    stage = state(name, total)
    stage.shows_platform = platform
    assert stage.step_name("RUN x") == said
    assert ("2/" in stage.step_name("RUN y", from_trigger=True)) == bool(total)


def test_history_tells_layers_from_settings() -> None:
    stage = state()
    stage.created = "1970-01-01T00:00:00Z"
    stage.remember("RUN x", layer=True)
    stage.remember("ENV a=1")
    assert [(step.created_by, step.empty_layer) for step in stage.image.history] == [
        ("RUN x", False),
        ("ENV a=1", True),
    ]
    assert {step.created for step in stage.image.history} == {"1970-01-01T00:00:00Z"}


def test_an_instruction_is_shown_with_its_variables_unless_they_are_wrong() -> None:
    assert shown("run echo $a", {"a": "1"}, WordRules()) == "RUN echo 1"
    assert shown("run echo ${", {}, WordRules()) == "RUN echo ${"
    assert shown("workdir", {}, WordRules()) == "WORKDIR"


def test_a_copy_of_an_image_is_its_own() -> None:
    base = ImageConfig(architecture="arm", config=ContainerConfig(env=["A=1"], labels={"x": "1"}))
    copy = copy_of(base)
    assert copy == base and copy.config is not None and base.config is not None
    copy.config.env.append("B=2")
    copy.config.labels["y"] = "2"
    assert (base.config.env, base.config.labels) == (["A=1"], {"x": "1"})
    assert copy_of(ImageConfig()).config == ContainerConfig()


def test_an_image_of_nothing_has_its_platform_and_a_path() -> None:
    image = empty_image(ARM)
    assert (image.architecture, image.variant, image.os) == ("arm", "v7", "linux")
    assert image.config is not None and image.config.env == [f"PATH={DEFAULT_PATH}"]
