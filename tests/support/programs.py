"""Programs in a directory of their own that write down the words they are given, instead of those of the host."""

from pathlib import Path


class WrittenPrograms:
    """Programs of a test; put `directory` into PATH to have them found."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self._told = directory / "told"

    def add(self, *names: str, script: str = "") -> None:
        """Add programs, or replace them; a script of the shell says what they do."""
        for name in names:
            path = self.directory / name
            path.write_text(f'#!/bin/sh\necho {name} "$@" >> {self._told}\n{script}\n')
            path.chmod(0o755)

    @property
    def told(self) -> list[str]:
        """The words of each call, with the program's name."""
        return self._told.read_text().splitlines() if self._told.exists() else []
