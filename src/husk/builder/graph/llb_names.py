"""Names of operations to which nobody gave a name."""

from collections.abc import Sequence

from husk.builder.graph.operations import Diff, Exec, Files, Merge, NestedBuild, Operation, Source
from husk.builder.store.file_actions import NONE, Copy, FileAction, MakeDirectory, MakeFile, Remove, Symlink

CUSTOM_NAME = "llb.customname"
# Of a name that is made of others: each could be twice as long as those before it.
LONGEST = 1024


def name_of(operation: Operation, inputs: Sequence[str]) -> str:
    """The name of an operation, from those of its inputs."""
    match operation.body:
        case Source(identifier):
            return identifier
        case Exec(process=process):
            return " ".join(process.args)
        case Files(actions):
            return ", ".join(map(_name_of_action, actions))
        case Merge():
            return f"merge ({_joined(inputs)})"
        case Diff(lower, upper):
            return f"diff {_side(lower, inputs)} -> {_side(upper, inputs)}"
        case NestedBuild():
            return "build"


def _name_of_action(step: FileAction) -> str:
    match step.action:
        case Copy(source=source, destination=destination):
            return f"copy {source} {destination}"
        case MakeFile(path=path):
            return f"mkfile {path}"
        case MakeDirectory(path=path):
            return f"mkdir {path}"
        case Symlink(target=target, path=path):
            return f"symlink {path} -> {target}"
        case Remove(path=path):
            return f"rm {path}"


def _joined(names: Sequence[str]) -> str:
    """As many as there is room for, and how many there are besides."""
    told: list[str] = []
    left = LONGEST
    for name in names:
        left -= len(name)
        if left < 0:
            break
        told.append(name)
    others = len(names) - len(told)
    return ", ".join([*told, f"{others} more"] if others else told)


def _side(number: int, inputs: Sequence[str]) -> str:
    if number == NONE:
        return "scratch"
    name = inputs[number]
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}..."
