"""Damage to a daemon's files while it was down: records, logs and documents with other bytes in them."""

import contextlib
import random
import sqlite3
from pathlib import Path

from tests.fuzz import mutate

# What the kernel mounts is not for it to be tried with, and the file of records is changed record by record.
_NOT = ("layers", "mount-points", "mount-points.d", "state.db", "state.db-wal", "state.db-shm", "lock")
_LARGEST = 1 << 20


def damage(chance: random.Random, root: Path) -> str:
    """Change one thing below a data root whose daemon is down; says what."""
    return _record(chance, root) if chance.random() < 0.6 else _file(chance, root)


def _record(chance: random.Random, root: Path) -> str:
    with contextlib.closing(sqlite3.connect(root / "state.db", isolation_level=None)) as state:
        rows = state.execute("SELECT kind, key, CAST(body AS BLOB) FROM document ORDER BY kind, key").fetchall()
        kind, key, body = chance.choice(rows)
        try:
            changed = mutate.mutated_json(chance, [body])
        except ValueError:  # it is no document any more
            changed = mutate.mutated(chance, [body])
        state.execute("UPDATE document SET body = ? WHERE kind = ? AND key = ?", (changed, kind, key))
    return f"record {kind} {key}: {body!r} -> {changed!r}"


def _file(chance: random.Random, root: Path) -> str:
    files = sorted(_files(root))
    if not files:
        return "nothing"
    path = chance.choice(files)
    body = path.read_bytes()
    changed = mutate.mutated(chance, [body])
    path.write_bytes(changed)
    return f"file {path.relative_to(root)}: {body[:1000]!r} -> {changed[:1000]!r}"


def _files(root: Path) -> list[Path]:
    found = []
    for top in root.iterdir():
        if top.name in _NOT:
            continue
        below = [path for path in top.rglob("*") if "merged" not in path.parts] if top.is_dir() else [top]
        found += [path for path in below if path.is_file() and not path.is_symlink() and path.stat().st_size < _LARGEST]
    return found
