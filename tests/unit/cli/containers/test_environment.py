import pytest

from husk.cli.containers.environment import environment, labels
from husk.errors import InvalidParameter


def test_files_first_then_the_line(tmp_path):
    file = tmp_path / "env"
    file.write_text("# said\n\n  A=1\nMINE\nNOT_MINE\nB=two words\n")
    found = environment([str(file)], ["A=2", "MINE", "EMPTY="], {"MINE": "me"})
    assert found == ["A=1", "MINE=me", "B=two words", "A=2", "MINE=me", "EMPTY="]


def test_what_cannot_be_read(tmp_path):
    with pytest.raises(InvalidParameter, match="no such file"):
        environment([str(tmp_path / "none")], [])
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(InvalidParameter, match="not text"):
        environment([str(tmp_path / "bytes")], [])
    (tmp_path / "spaces").write_text("A B=1\n")
    with pytest.raises(InvalidParameter, match="'A B=1'"):
        environment([str(tmp_path / "spaces")], [])
    with pytest.raises(InvalidParameter, match="'=1'"):
        environment([], ["=1"])


def test_labels(tmp_path):
    (tmp_path / "labels").write_text("a=1\nb\n")
    assert labels([str(tmp_path / "labels")], ["a=2", "c=x=y"]) == {"a": "2", "b": "", "c": "x=y"}
    with pytest.raises(InvalidParameter, match="invalid label"):
        labels([], ["=1"])
