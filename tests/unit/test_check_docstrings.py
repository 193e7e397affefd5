"""`scripts/check-docstrings` names the docstrings that open with a question."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/check-docstrings"

MODULE = '''"""What is here."""

class A:
    """A thing. What is it?"""

    def f(self):
        """
        Is it?
        """
'''


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("check_docstrings", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_questions_are_named_and_statements_are_not(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "src/husk").mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "src/husk/a.py").write_text(MODULE)
    (tmp_path / "scripts/tool").write_text('#!/usr/bin/env python3\n"""Whether, where."""\n')
    (tmp_path / "scripts/shell").write_text("#!/bin/sh\nwhat\n")
    assert script.complaints(tmp_path) == [
        "scripts/tool:2: Whether, where.",
        "src/husk/a.py:1: What is here.",
        "src/husk/a.py:7: Is it?",
    ]


def test_those_below_attributes_are_read_too(script: ModuleType) -> None:
    code = 'class C:\n    """A thing."""\n\n    a: int\n    """What it is."""\n    b = 1\n    """The other."""\n'
    assert list(script.questions(code)) == [(5, "What it is.")]
