"""Options of clients for exporters of images."""

import pytest

from husk.builder.exporters.options import Annotations, epoch_of, names_of, read
from husk.builder.store.compressions import Compression
from husk.errors import InvalidParameter, NotImplementedYet
from husk.registry.manifest import Platform


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("a", ["docker.io/library/a:latest"]),
        ("a:1, me/b:2,a:1", ["docker.io/library/a:1", "docker.io/me/b:2"]),
        ("registry.example:5000/x", ["registry.example:5000/x:latest"]),
        ("*", ["docker.io/library/told:latest"]),
    ],
)
def test_names(text, names):
    assert [str(name) for name in names_of({"name": text}, {"image.name": b"told"})] == names


@pytest.mark.parametrize("text", ["UPPER", "a@sha256:" + "0" * 64, "sha256:x", "a," * 1000])
def test_names_that_no_image_can_have(text):
    with pytest.raises(InvalidParameter):
        names_of({"name": text}, {})


def test_nothing_said():
    options = read({}, {})
    assert (options.store, options.tar, options.push, options.exact) == (True, True, False, False)
    assert (options.compression, options.oci, options.clamp) == (Compression("gzip"), None, None)


def test_words_without_a_value_say_yes():
    options = read({"push": "", "push-by-digest": "1", "name-canonical": "true", "store": "false", "tar": "0"}, {})
    assert (options.push, options.by_digest, options.canonical, options.store, options.tar) == (
        True, True, True, False, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attributes", "compression"),
    [
        ({"compression": "zstd"}, Compression("zstd")),
        ({"compression": "zstd", "compression-level": "22"}, Compression("zstd", 22)),
        ({"compression-level": "9"}, Compression("gzip", 9)),
        ({"compression": "uncompressed"}, Compression("uncompressed")),
    ],
)
def test_compression(attributes, compression):
    assert read(attributes, {}).compression == compression


@pytest.mark.parametrize(
    ("attributes", "complaint"),
    [
        ({"push": "maybe"}, "non-bool value specified for push"),
        ({"compression": "lzma"}, "unsupported layer compression type"),
        ({"compression-level": "x"}, "non-integer"),
        ({"compression-level": "10"}, "from 0 to 9"),
        ({"compression": "zstd", "oci-mediatypes": "false"}, "conflicts"),
        ({"annotation.a": "b", "oci-mediatypes": "false"}, "cannot export annotations"),
        ({"annotation-layer.a": "b"}, "unrecognized annotation type layer"),
        ({"source-date-epoch": "soon"}, "SOURCE_DATE_EPOCH"),
    ],
)
def test_what_makes_no_sense(attributes, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        read(attributes, {})


def test_what_is_not_built_yet():
    with pytest.raises(NotImplementedYet, match="estargz"):
        read({"compression": "estargz"}, {})


def test_registries_without_verified_tls_and_attestations_as_artifacts():
    options = read({"registry.insecure": "true", "oci-artifact": "1"}, {})
    assert (options.insecure, options.artifact) == (True, True)
    assert (read({}, {}).insecure, read({}, {}).artifact) == (False, False)


def test_annotations():
    options = read(
        {
            "annotation.a": "1",
            "annotation-manifest[linux/arm64].b": "2",
            "annotation-index.c": "3",
            "annotation-index-descriptor.d": "4",
            "annotation-manifest-descriptor.e": "5",
        },
        {"annotation.f": b"6", "other": b"x"},
    )
    assert options.annotations_for() == Annotations({"c": "3"}, {"d": "4"}, {"a": "1", "f": "6"}, {"e": "5"})
    assert options.annotations_for(Platform("arm64", "linux")).manifest == {"a": "1", "b": "2", "f": "6"}
    assert options.exact


def test_the_epoch_of_the_exporter_goes_before_that_of_the_frontend():
    found = {"source.date.epoch": b"7"}
    assert epoch_of({}, found) == 7
    assert epoch_of({"source-date-epoch": "8"}, found) == 8
    assert read({}, found).clamp == 7
    assert read({"rewrite-timestamp": "false"}, found).clamp is None
