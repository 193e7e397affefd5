"""The public part of the library, as text: names, fields, signatures. A test compares it with what was recorded.

python -m tests.support.surface > tests/unit/public_surface.txt
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import husk
from husk.client.client import Client


def surface() -> Iterator[str]:
    """Line by line: what `husk` exports, then what is reached through a client's attributes."""
    for name in sorted(set(husk.__all__) - {"__version__", "errors"}):
        yield from _shown(name, getattr(husk, name))
    for name, found in sorted(vars(husk.errors).items()):
        if inspect.isclass(found) and issubclass(found, husk.errors.HuskError):
            yield from _shown(f"errors.{name}", found)
    for name, kind in sorted(collections().items()):
        yield from _shown(f"Client.{name}: {kind.__name__}", kind)


def collections() -> dict[str, type]:
    """Return the collections of a client, by the names of its attributes."""
    client = Client(_nobody)
    made = (name for name, found in vars(Client).items() if isinstance(found, cached_property | property))
    kinds = {name: type(getattr(client, name)) for name in (*vars(client), *made) if not name.startswith("_")}
    return {name: kind for name, kind in kinds.items() if kind.__module__.startswith("husk.client.")}


def examples(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring that are Python, not words."""
    for paragraph in text.split("\n\n")[1:]:
        code = textwrap.dedent(paragraph)
        try:
            tree = compile(code, "example", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError:
            continue
        if any(isinstance(node, ast.Call) for node in ast.walk(tree)):
            yield code


async def _nobody() -> Any:
    raise NotImplementedError


def _shown(name: str, found: Any) -> Iterator[str]:
    if not inspect.isclass(found):
        yield _function(_node(found))
        return
    ours = [base for base in found.__mro__ if base.__module__.startswith("husk") and base is not found]
    if any("_twin_of" in vars(base) for base in ours):
        ours = []  # it is made of another class, which has the source
    yield f"class {name}({', '.join(base.__name__ for base in ours if not base.__name__.startswith('_'))})"
    members: dict[str, str] = {}
    for each in [*reversed(ours), found]:
        for member, line in _members(_node(each)):
            members.pop(member, None)
            members[member] = line
    yield from (f"    {line}" for line in members.values())


def _node(found: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]


def _members(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if not node.target.id.startswith("_"):
                yield node.target.id, ast.unparse(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == "__init__":
                yield from _attributes(node)
            if not node.name.startswith("_") or node.name in ("__aiter__", "__await__", "__aenter__"):
                yield node.name, _function(node)


def _attributes(init: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a thing gets when it is made."""
    for node in ast.walk(init):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
                kind = f": {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
                yield target.attr, f"self.{target.attr}{kind}"


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    marks = "".join(f"@{ast.unparse(each)} " for each in node.decorator_list)
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{marks}{kind} {node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in surface())
