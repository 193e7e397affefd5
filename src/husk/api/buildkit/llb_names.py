"""What operations are called where nobody gave them a name."""

from husk.engine.builder.operations import (
    NONE,
    Build,
    Copy,
    Diff,
    Exec,
    FileAction,
    Files,
    MakeDirectory,
    MakeFile,
    Merge,
    Operation,
    Remove,
    Source,
    Symlink,
)

CUSTOM_NAME = "llb.customname"


def name_of(operation: Operation, inputs: list[str]) -> str:
    """The name of an operation, from those of its inputs."""
    match operation.body:
        case Source(identifier):
            return identifier
        case Exec(process=process):
            return " ".join(process.args)
        case Files(actions):
            return ", ".join(map(_name_of_action, actions))
        case Merge():
            return f"merge ({', '.join(inputs)})"
        case Diff(lower, upper):
            return f"diff {_side(lower, inputs)} -> {_side(upper, inputs)}"
        case Build():
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


def _side(number: int, inputs: list[str]) -> str:
    return "scratch" if number == NONE else inputs[number]
