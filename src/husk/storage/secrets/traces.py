"""Traces on the disk of secrets, or of the key that they are sealed with."""

from pathlib import Path

# In the data root, and in the exec root.
KEY = "swarm.key"
TASK_FILES = "secrets"


def any_left(key: Path, task_files: Path) -> bool:
    """A key, its lock file or what a crash left beside them; files of tasks. Blocks: call it from a thread."""
    return any(key.parent.glob(f"{key.stem}.*")) or (task_files.is_dir() and any(task_files.iterdir()))
