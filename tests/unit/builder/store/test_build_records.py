from pathlib import Path

from husk.builder.store.build_records import RECORD, BuildRecords


def test_records_come_back_in_their_order_and_what_is_none_goes(tmp_path: Path) -> None:
    directory = tmp_path / "records"
    records = BuildRecords(directory)
    assert records.load() == []
    for name in ("b", "a"):
        records.save(name, {RECORD: name.encode(), "blob": b"x"})
    (directory / "new-c").mkdir()
    (directory / "half").mkdir()
    (directory / "file").write_text("x")
    assert sorted(BuildRecords(directory).load()) == [b"a", b"b"]
    assert sorted(place.name for place in directory.iterdir()) == ["a", "b"]


def test_files_are_changed_read_and_removed(tmp_path: Path) -> None:
    records = BuildRecords(tmp_path)
    records.save("a", {RECORD: b"1", "blob": b"x"})
    records.save("a", {RECORD: b"2"})
    assert (records.read("a", RECORD), records.read("a", "blob")) == (b"2", b"x")
    assert records.read("a", "other") is records.read("b", RECORD) is None
    records.remove("a")
    records.remove("a")
    assert list(tmp_path.iterdir()) == []
