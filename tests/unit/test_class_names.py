"""One meaning, one name: a class that is no form on the wire and no interface has its name alone."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import husk

SOURCE = Path(husk.__file__).parent
# Forms of what is said on a wire have the names of that wire; the client has Docker's nouns for its users.
WIRES = (
    "api/types/", "builder/frontend/reading/messages.py", "builder/graph/ops.py", "builder/protocol/messages/",
    "client/", "swarm/port/assignment_messages.py", "swarm/port/log_messages.py", "swarm/port/messages.py",
    "swarm/state/etcd/messages.py",
)  # fmt: skip
# The same word of the field in two places: instructions of a Dockerfile, Docker's platform beside OCI's, what users
# import, and the class that a worker which reads foreign text asks its module for.
WORDS = {
    "Answerer": {"builder/frontend/reading/answerer.py", "builder/frontend/reading/llb_answerer.py"},
    "Copy": {"builder/dockerfile/instructions.py", "builder/store/file_actions.py"},
    "Engine": {"composition.py", "library/embedded.py"},
    "Platform": {"registry/manifest.py", "swarm/model/services.py"},
    "Service": {"pytest_plugin.py", "swarm/model/services.py"},
    "Volume": {"builder/dockerfile/instructions.py", "engine/model/volume.py"},
}


def classes(tree: ast.Module) -> Iterator[str]:
    """Yield the public classes of a module but interfaces, which have the names of what they lead to."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
            if "Protocol" not in bases:
                yield node.name


def test_a_class_has_its_name_alone() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE).as_posix()
        if not module.startswith(WIRES):
            for name in classes(ast.parse(path.read_text())):
                places[name].add(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == WORDS
