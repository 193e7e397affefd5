"""The rules of `docker build --check`, and the warnings of those that a file does not keep."""

import re

from msgspec import Struct

PAGES = "https://docs.docker.com/go/dockerfile/rule/"

# In the words of the reference: tools look for them.
RULES = {
    "ConsistentInstructionCasing": (
        "All commands within the Dockerfile should use the same casing (either upper or lower)"
    ),
    "CopyIgnoredFile": "Attempting to Copy file that is excluded by .dockerignore",
    "DuplicateStageName": "Stage names should be unique",
    "ExposeInvalidFormat": (
        "IP address and host-port mapping should not be used in EXPOSE instruction. This will "
        "become an error in a future release"
    ),
    "ExposeProtoCasing": "Protocol in EXPOSE instruction should be lowercase",
    "FromAsCasing": "The 'as' keyword should match the case of the 'from' keyword",
    "FromPlatformFlagConstDisallowed": "FROM --platform flag should not use a constant value",
    "InvalidBaseImagePlatform": "Base image platform does not match expected target platform",
    "InvalidDefaultArgInFrom": ("Default value for global ARG results in an empty or invalid base image name"),
    "InvalidDefinitionDescription": (
        "Comment for build stage or argument should follow the format: `# <arg/stage name> "
        "<description>`. If this is not intended to be a description comment, add an empty line or "
        "comment between the instruction and the comment."
    ),
    "JSONArgsRecommended": (
        "JSON arguments recommended for ENTRYPOINT/CMD to prevent unintended behavior related to OS signals"
    ),
    "LegacyKeyValueFormat": "Legacy key/value format with whitespace separator should not be used",
    "MaintainerDeprecated": ("The MAINTAINER instruction is deprecated, use a label instead to define an image author"),
    "MultipleInstructionsDisallowed": ("Multiple instructions of the same type should not be used in the same stage"),
    "NoEmptyContinuation": "Empty continuation lines will become errors in a future release",
    "RedundantTargetPlatform": (
        "Setting platform to predefined $TARGETPLATFORM in FROM is redundant as this is the default behavior"
    ),
    "ReservedStageName": "Reserved words should not be used as stage names",
    "SecretsUsedInArgOrEnv": "Sensitive data should not be used in the ARG or ENV commands",
    "StageNameCasing": "Stage names should be lowercase",
    "UndefinedArgInFrom": "FROM command must use declared ARGs",
    "UndefinedVar": "Variables should be defined before their use",
    "WorkdirRelativePath": (
        "Relative workdir without an absolute workdir declared within the build can have unexpected "
        "results if the base image changes"
    ),
}
EXPERIMENTAL = ("CopyIgnoredFile", "InvalidDefinitionDescription")
WITHOUT_PAGE = ("InvalidBaseImagePlatform",)


class Span(Struct, frozen=True):
    """Lines of the file, counted from one, both included."""

    start: int
    end: int


class Warning(Struct, frozen=True):
    rule: str
    message: str
    span: Span

    @property
    def description(self) -> str:
        return RULES[self.rule]

    @property
    def url(self) -> str:
        if self.rule in WITHOUT_PAGE:
            return ""
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", self.rule)
        return f"{PAGES}{'-'.join(words).lower()}/"
