from husk.storage.layers import power
from husk.storage.layers.power import PowerNote


def test_the_same_boot_and_the_same_disk(tmp_path):
    data, run = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    run.mkdir()
    note = PowerNote(run, data)
    assert not note.held()
    note.write()
    assert note.held()
    assert PowerNote(run, data).held()


def test_another_boot(tmp_path, monkeypatch):
    note = PowerNote(tmp_path, tmp_path)
    note.write()
    other = tmp_path / "boot_id"
    other.write_text("another\n")
    monkeypatch.setattr(power, "_BOOT", other)
    assert not note.held()


def test_another_data_root(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    PowerNote(tmp_path, tmp_path / "a").write()
    assert not PowerNote(tmp_path, tmp_path / "b").held()


def test_a_note_that_cannot_be_read(tmp_path):
    (tmp_path / "boot").write_bytes(b"\xff\xfe")
    assert not PowerNote(tmp_path, tmp_path).held()
    assert not PowerNote(tmp_path, tmp_path / "none").held()
