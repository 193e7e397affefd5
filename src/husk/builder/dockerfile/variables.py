"""The variables that exist while a Dockerfile is carried out: predefined ones, arguments, the environment.

Global arguments stand before the first FROM and are seen by FROM alone, until a stage asks for them by an ARG.
"""

from collections.abc import Mapping

from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.instructions import ArgInstruction
from husk.builder.dockerfile.words import WordRules, expand
from husk.registry.manifest import Platform

PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
NOT_IN_ENVIRONMENT = ("BUILDKIT_SBOM_SCAN_CONTEXT", "BUILDKIT_SBOM_SCAN_STAGE")  # `scans` looks at them


def predefined(target: Platform, here: Platform, build_args: Mapping[str, str], stage: str) -> dict[str, str]:
    """Return the variables that FROM can use without any ARG; `--build-arg` may give them other values."""
    known = {
        "BUILDPLATFORM": str(here),
        "BUILDOS": here.os,
        "BUILDOSVERSION": here.os_version,
        "BUILDARCH": here.architecture,
        "BUILDVARIANT": here.variant,
        "TARGETPLATFORM": str(target),
        "TARGETOS": target.os,
        "TARGETOSVERSION": target.os_version,
        "TARGETARCH": target.architecture,
        "TARGETVARIANT": target.variant,
        "TARGETSTAGE": stage or "default",
    }
    return {name: build_args.get(name, value) for name, value in known.items()}


def with_global_args(
    variables: dict[str, str], args: list[ArgInstruction], build_args: Mapping[str, str], rules: WordRules
) -> dict[str, str]:
    variables = dict(variables)
    for instruction in args:
        for arg in instruction.args:
            value = build_args.get(arg.name)
            if value is None and arg.default is not None:
                try:
                    value = expand(arg.default, variables, rules).text
                except DockerfileError as error:
                    raise error.at(instruction.origin.span) from None
            if value is not None:
                variables[arg.name] = value
    return variables


def proxies(build_args: Mapping[str, str]) -> dict[str, str]:
    """Proxies reach processes though no ARG names them, and change nothing about what is cached."""
    found = {name.lower(): value for name, value in sorted(build_args.items()) if name.lower() in PROXIES}
    return {name: found[name] for name in PROXIES if name in found}
