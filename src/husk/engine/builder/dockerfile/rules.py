"""The rules of `docker build --check`, and the warnings of those that a file does not keep."""

import re

from msgspec import Struct

from husk.engine.builder.dockerfile.errors import Span

PAGES = "https://docs.docker.com/go/dockerfile/rule/"

RULES = {
    "ConsistentInstructionCasing": "Instructions are written in one case, capitals or small letters",
    "CopyIgnoredFile": "What is copied is not left out by .dockerignore",
    "DuplicateStageName": "Every stage has a name of its own",
    "ExposeInvalidFormat": "EXPOSE names ports of the container, not addresses or ports of the host",
    "ExposeProtoCasing": "The protocol in EXPOSE is written in small letters",
    "FromAsCasing": "FROM and AS are written in the same case",
    "FromPlatformFlagConstDisallowed": "The platform of a stage is not fixed",
    "InvalidBaseImagePlatform": "The base image is for the platform that is built for",
    "InvalidDefaultArgInFrom": "The base image has a valid name though no build argument is given",
    "InvalidDefinitionDescription": "A comment above a stage or argument begins with its name",
    "JSONArgsRecommended": "CMD and ENTRYPOINT are JSON arrays, so that signals reach the process",
    "LegacyKeyValueFormat": "Names and values are joined by an equals sign",
    "MaintainerDeprecated": "An author is told by a label, not by MAINTAINER",
    "MultipleInstructionsDisallowed": "An instruction of which only the last one counts stands once in a stage",
    "NoEmptyContinuation": "No empty line stands in the middle of an instruction",
    "RedundantTargetPlatform": "The platform that is the default anyhow is not given",
    "ReservedStageName": "Stages have no reserved names",
    "SecretsUsedInArgOrEnv": "Secrets are given by mounts, not by ARG or ENV, which stay in the image",
    "StageNameCasing": "Names of stages are in small letters",
    "UndefinedArgInFrom": "Variables in FROM are declared before it",
    "UndefinedVar": "Variables are defined before they are used",
    "WorkdirRelativePath": "The first WORKDIR of a build is absolute",
}
EXPERIMENTAL = ("InvalidDefinitionDescription",)
WITHOUT_PAGE = ("InvalidBaseImagePlatform",)


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
