"""The stages and context that a Dockerfile wants scanned for the SBOM of its target, besides the target itself. Pure.

`ARG BUILDKIT_SBOM_SCAN_STAGE=true` in a stage is for that stage, before the first FROM or as `--build-arg` for all; a
list of names is for those stages. `BUILDKIT_SBOM_SCAN_CONTEXT` is the same for the context, and the target says it.
"""

from collections.abc import Iterable, Mapping

from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.stages import StagePlan

SCAN_CONTEXT, SCAN_STAGE = "BUILDKIT_SBOM_SCAN_CONTEXT", "BUILDKIT_SBOM_SCAN_STAGE"
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def wants_context(target: StagePlan, variables: Mapping[str, str], build_args: Mapping[str, str]) -> bool:
    return _is_wanted(target, SCAN_CONTEXT, variables, build_args)


def wanted_stages(
    target: StagePlan, needed: Iterable[StagePlan], variables: Mapping[str, str], build_args: Mapping[str, str]
) -> list[StagePlan]:
    """Those that the target needs and that are to be scanned."""
    others = [plan for plan in needed if plan is not target and plan.code]
    return [plan for plan in others if _is_wanted(plan, SCAN_STAGE, variables, build_args)]


def _is_wanted(plan: StagePlan, name: str, variables: Mapping[str, str], build_args: Mapping[str, str]) -> bool:
    value = build_args.get(name, variables.get(name, ""))
    for step in plan.steps:
        if isinstance(step.instruction, types.ArgInstruction) and name not in build_args:
            said = [arg.default for arg in step.instruction.args if arg.name == name and arg.default is not None]
            value = said[-1].strip("\"'") if said else value
    if value in _TRUE or value in ("", *_FALSE):
        return value in _TRUE
    return plan.name in value.split(",")
