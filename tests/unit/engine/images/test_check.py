"""Meanings of damage to blobs and layers for images, names and containers, and the cure of it."""

from collections.abc import Callable

from husk.engine.images.check import ImageFindings, Records, judge, pulled_names
from husk.engine.model.container import Container
from husk.engine.model.image import Image
from husk.storage.check import BlobFacts, LayerFacts
from husk.storage.layers.store import Layer
from tests.support.but import but
from tests.unit.engine.records import container, digest, image

ONE, NAME = "one", "docker.io/library/one:latest"


def made(name: str = ONE) -> Image:
    """An image of one layer, whose chain id is its diff id."""
    record = image(name)
    return but(record, chain_ids=record.diff_ids)


def layer_of(record: Image) -> Layer:
    diff_id = record.diff_ids[0]
    return Layer(diff_id, diff_id, "", "1", 5, digest(record.id + " blob"), 10, "tar")


class Case:
    """A sound store with one image, to be damaged."""

    def __init__(self) -> None:
        self.image = made()
        self.layer = layer_of(self.image)
        self.blobs = BlobFacts({self.image.id: 1, self.image.manifest: 1, self.layer.blob: 10})
        self.layers = LayerFacts({self.layer.chain_id: self.layer})
        self.names = {NAME: self.image.id}
        self.containers: list[Container] = []

    def judge(self, busy: Callable[[Container], bool] = lambda container: False) -> ImageFindings:
        return judge(Records({self.image.id: self.image}, self.names, self.containers), self.blobs, self.layers, busy)


def test_a_sound_store_has_no_problems():
    assert Case().judge() == ImageFindings()


def test_a_damaged_directory_is_unpacked_again_unless_somebody_runs_on_it():
    case = Case()
    case.layers.damaged[case.layer.chain_id] = "a file is missing"
    assert case.judge().unpack == [case.layer.chain_id]
    assert not case.judge().broken_images
    case.containers = [container("user", layers=[case.layer.chain_id])]
    running = case.judge(busy=lambda container: True)
    assert running.unpack == [] and not running.problems[0].fixable
    assert "stop container user" in running.problems[0].cure


def test_a_damaged_blob_of_a_layer_leaves_an_image_that_runs():
    case = Case()
    del case.blobs.whole[case.layer.blob]
    verdict = case.judge()
    assert (verdict.pack, verdict.broken_images) == ([case.layer.chain_id], {})
    assert "is missing" in verdict.problems[0].detail


def test_a_blob_of_another_size_than_recorded_is_damaged():
    case = Case()
    case.blobs.whole[case.layer.blob] = 11
    assert case.judge().pack == [case.layer.chain_id]


def test_an_image_without_its_layer_or_configuration_is_broken():
    lost = Case()
    lost.layers.damaged[lost.layer.chain_id] = "it is gone"
    lost.blobs.damaged[lost.layer.blob] = "it is wrong"
    del lost.blobs.whole[lost.layer.blob]
    assert "is damaged" in lost.judge().broken_images[lost.image.id]
    unknown = Case()
    unknown.layers.layers.clear()
    del unknown.blobs.whole[unknown.layer.blob]
    assert "is missing" in unknown.judge().broken_images[unknown.image.id]
    unconfigured = Case()
    del unconfigured.blobs.whole[unconfigured.image.id]
    assert "its configuration" in unconfigured.judge().broken_images[unconfigured.image.id]


def test_a_record_whose_chain_is_not_its_own_is_broken():
    case = Case()
    case.image = but(case.image, diff_ids=[digest("another")])
    assert "chain ids" in case.judge().broken_images[case.image.id]


def test_a_manifest_can_be_composed_again():
    case = Case()
    del case.blobs.whole[case.image.manifest]
    verdict = case.judge()
    assert (verdict.recompose, verdict.broken_images) == ([case.image.id], {})


def test_and_so_can_one_whose_packed_layers_are_lost():
    case = Case()
    case.image = but(case.image, packed=[digest("packed")])
    assert case.judge().recompose == [case.image.id]
    case.blobs.whole[digest("packed")] = 1
    assert case.judge().problems == []


def test_names_without_an_image_are_loose():
    case = Case()
    case.names |= {"docker.io/library/ghost:1": digest("nobody"), "No Such:Form": case.image.id}
    assert case.judge().loose_names == ["docker.io/library/ghost:1", "No Such:Form"]


def test_a_container_without_its_layers_is_told():
    case = Case()
    case.containers = [container("stranded", layers=[digest("gone")])]
    assert [(problem.subject, problem.fixable) for problem in case.judge().problems] == [("container stranded", False)]


def test_what_nobody_uses_is_a_leftover_and_no_damage():
    case = Case()
    case.blobs.whole[digest("unused")] = 1
    loose = layer_of(made("loose"))
    case.layers.layers[loose.chain_id] = loose
    case.blobs.whole[loose.blob] = 10
    case.layers.strays = ["l/7"]
    problems = case.judge().problems
    assert [problem.subject for problem in problems] == [
        f"layer {loose.chain_id}", f"blob {digest('unused')}", "directory layers/l/7",
    ]  # fmt: skip
    assert not any(problem.damage for problem in problems)


def test_an_image_can_be_pulled_again_from_where_it_has_a_digest():
    one = made()
    names = {
        "docker.io/library/one:1": one.id, "docker.io/library/one@sha256:1": one.id, "local/only:1": one.id,
        "docker.io/library/other@sha256:2": digest("other"),
    }  # fmt: skip
    assert pulled_names(one, names) == ["docker.io/library/one:1", "docker.io/library/one@sha256:1"]
    assert pulled_names(one, {"local/only:1": one.id}) == []
