"""A file system in a build is a stack: changes on top of each other, base first.

As text, with spaces between: `layer:<chain id>` is a layer of an image, `diff:<id>` is what one step has changed. An
empty text is a file system with nothing in it.
"""

from collections.abc import Iterable

_LAYER, _DIFF = "layer:", "diff:"


def elements(stack: str) -> list[str]:
    return stack.split()


def joined(*stacks: str) -> str:
    """All of them on top of each other."""
    return " ".join(stack for stack in stacks if stack)


def of_layers(chain_ids: Iterable[str]) -> str:
    return " ".join(_LAYER + chain_id for chain_id in chain_ids)


def layers_in(stack: str) -> list[str]:
    """The chain ids of the layers of images in a stack."""
    return [element.removeprefix(_LAYER) for element in elements(stack) if element.startswith(_LAYER)]


def diffs_in(stack: str) -> list[str]:
    return [element for element in elements(stack) if element.startswith(_DIFF)]


def above(lower: str, upper: str) -> str | None:
    """Return the elements that `upper` has on top of `lower`; None if it does not lie on it."""
    below, all = elements(lower), elements(upper)
    return " ".join(all[len(below) :]) if all[: len(below)] == below else None
