"""What pyproject.toml cannot say: a build fetches the scripts of others that the dashboard has (scripts/vendor)."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist


def vendor() -> None:
    """A build goes on without them: then the dashboard has no terminal, and says so."""
    if subprocess.run([sys.executable, Path(__file__).with_name("scripts") / "vendor"], check=False).returncode:
        print("setup.py: building without xterm.js (see above): the dashboard will have no terminal", file=sys.stderr)


class Build(build_py):
    """A wheel. An editable installation uses this directory: scripts/setup calls scripts/vendor for it."""

    def run(self) -> None:
        if not self.editable_mode:
            vendor()
        super().run()


class SourceArchive(sdist):
    """It has them too: whoever builds from it needs no registry."""

    def run(self) -> None:
        vendor()
        super().run()


setup(cmdclass={"build_py": Build, "sdist": SourceArchive})
