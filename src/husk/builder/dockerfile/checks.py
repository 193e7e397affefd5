"""The checks of `docker build --check`: what works and is likely not meant.

A rule has the name and the page that Docker's documentation gives it. `# check=` at the top of a file says which rules
count (`skip=NAME,…`, `experimental=NAME,…`, `error=true`); such a comment above an instruction says it for that alone.
"""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from husk.builder.dockerfile import directives
from husk.builder.dockerfile import instructions as types
from husk.builder.dockerfile.errors import DockerfileError, shortened, suggestion
from husk.builder.dockerfile.lines import Pair
from husk.builder.dockerfile.parse import Dockerfile
from husk.builder.dockerfile.rules import EXPERIMENTAL, Span, Warning
from husk.builder.dockerfile.variables import NOT_IN_ENVIRONMENT, with_global_args
from husk.builder.dockerfile.words import WordRules, expand
from husk.errors import HuskError, InvalidParameter
from husk.registry import reference
from husk.registry.manifest import parse_platform

RESERVED = ("context", "scratch")
_SECRET = re.compile(
    r"(?:_|^)(?:apikey|auth|credentials?|key|password|pword|passwd|secret|token)(?:_|$)", re.IGNORECASE
)
_NO_SECRET = re.compile(r"(?:_|^)(?:public|file|version)(?:_|$)", re.IGNORECASE)


# What one file is warned of; each is shown beside the lines that it is about.
MOST_WARNINGS = 1000


class CheckOptions(Struct, frozen=True):
    skip: frozenset[str] = frozenset()
    skip_all: bool = False
    experimental: frozenset[str] = frozenset()
    experimental_all: bool = False
    as_error: bool = False

    def wants(self, rule: str) -> bool:
        if rule in EXPERIMENTAL:
            return self.experimental_all or rule in self.experimental
        return not (self.skip_all or rule in self.skip)

    def with_comment(self, comments: Iterable[str]) -> "CheckOptions":
        """Return the options that count for an instruction with these comments above it."""
        for comment in comments:
            directive = directives.parse(comment, 0, comment="")
            if directive is None or directive.name != "check":
                continue
            try:
                more = parse_options(directive.value.split(" ")[0])
            except DockerfileError:
                return self
            return CheckOptions(
                skip=self.skip | more.skip,
                skip_all=self.skip_all or more.skip_all,
                experimental=self.experimental | more.experimental,
                experimental_all=self.experimental_all or more.experimental_all,
                as_error=self.as_error,
            )
        return self


def parse_options(text: str) -> CheckOptions:
    """`skip=A,B;experimental=all;error=true`"""
    said: dict[str, str] = {}
    for option in filter(None, text.strip().split(";")):
        key, equals, value = option.partition("=")
        if not equals or key.strip() not in ("skip", "experimental", "error"):
            raise DockerfileError(f'invalid check option "{option}"')
        said[key.strip()] = value.strip()
    skip, experimental = _names(said.get("skip")), _names(said.get("experimental"))
    error = said.get("error", "false")
    if error.lower() not in ("1", "t", "true", "0", "f", "false"):
        raise DockerfileError(f'failed to parse check option "error={error}"')
    return CheckOptions(
        skip=skip,
        skip_all=skip == {"all"},
        experimental=experimental,
        experimental_all=experimental == {"all"},
        as_error=error.lower() in ("1", "t", "true"),
    )


def _names(text: str | None) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",")) if text else frozenset()


class Checks:
    """Collects the warnings of one build, each once."""

    def __init__(self, options: CheckOptions | None = None) -> None:
        self.options = options or CheckOptions()
        self.warnings: list[Warning] = []
        self._told: set[Warning] = set()

    @property
    def _full(self) -> bool:
        return len(self.warnings) >= MOST_WARNINGS

    def warn(self, rule: str, origin: types.Origin | None, message: str, span: Span | None = None) -> None:
        if self._full:
            return
        options = self.options.with_comment(origin.comments) if origin else self.options
        place = span or (origin.span if origin else Span(1, 1))
        warning = Warning(rule, shortened(message), place)
        if options.wants(rule) and warning not in self._told:
            self._told.add(warning)
            self.warnings.append(warning)

    def undefined(self, origin: types.Origin, missing: Iterable[str], known: Mapping[str, str]) -> None:
        if self._full:
            return
        for name in sorted(missing):
            if name not in NOT_IN_ENVIRONMENT:
                hint = suggestion("$" + name, [f"${other}" for other in known], fold_case=False)
                self.warn("UndefinedVar", origin, f"Usage of undefined variable '${name}'{hint}")

    def raise_if_asked(self) -> None:
        if self.options.as_error and self.warnings:
            rules = ", ".join(sorted({warning.rule for warning in self.warnings}))
            raise DockerfileError(f"lint violation found for rules: {rules}")


def options_of(dockerfile: Dockerfile, given: str | None = None) -> CheckOptions:
    """Return the check options that count: the client's (BUILDKIT_DOCKERFILE_CHECK), else the file's."""
    if given is not None:
        return parse_options(given)
    for directive in dockerfile.directives:
        if directive.name == "check":
            return parse_options(directive.value.split(" ")[0])
    return CheckOptions()


# --- what the text alone tells, in the order in which the reference comes to it --------------------------------------


def _reserved(name: str) -> str:
    return f'Stage name should not use the same name as reserved stage "{name}"'


def _duplicate(name: str) -> str:
    return f'Duplicate stage name "{name}", stage names should be unique'


def _casing(keyword: str, others: str) -> str:
    return f"Command '{keyword}' should match the case of the command majority ({others})"


def _redundant(platform: str) -> str:
    return f"Setting platform to predefined {platform} in FROM is redundant as this is the default behavior"


def _constant(platform: str) -> str:
    return f'FROM --platform flag should not use constant value "{platform}"'


def check_text(dockerfile: Dockerfile, checks: Checks) -> None:
    for span in dockerfile.empty_continuations:
        checks.warn("NoEmptyContinuation", None, "Empty continuation line", span)
    for instruction in _all(dockerfile):
        _check_as_read(instruction, checks)
    _check_stage_names(dockerfile, checks)
    _check_casing(dockerfile, checks)


def _all(dockerfile: Dockerfile) -> list[types.Instruction]:
    found: list[types.Instruction] = list(dockerfile.global_args)
    for stage in dockerfile.stages:
        found += [stage.begin, *stage.instructions]
    return found


def _check_stage_names(dockerfile: Dockerfile, checks: Checks) -> None:
    seen: set[str] = set()
    for stage in dockerfile.stages:
        if stage.name in RESERVED:
            checks.warn("ReservedStageName", stage.begin.origin, _reserved(stage.name))
        if stage.name and stage.name in seen:
            checks.warn("DuplicateStageName", stage.begin.origin, _duplicate(stage.name))
        seen.add(stage.name)


def _check_casing(dockerfile: Dockerfile, checks: Checks) -> None:
    origins = [instruction.origin for instruction in _all(dockerfile)[len(dockerfile.global_args) :]]
    small = sum(origin.keyword.islower() for origin in origins)
    capital = sum(origin.keyword.isupper() for origin in origins)
    for origin in origins:
        if small > capital and not origin.keyword.islower():
            checks.warn("ConsistentInstructionCasing", origin, _casing(origin.keyword, "lowercase"))
        elif small <= capital and not origin.keyword.isupper():
            checks.warn("ConsistentInstructionCasing", origin, _casing(origin.keyword, "uppercase"))


def _check_from(begin: types.From, checks: Checks) -> None:
    written = begin.origin.code.split()[-1]
    if begin.name and written != written.lower():
        checks.warn("StageNameCasing", begin.origin, f"Stage name '{written}' should be lowercase")
    keyword, word = begin.origin.keyword, begin.as_keyword
    if word and ((keyword.islower() and not word.islower()) or (keyword.isupper() and not word.isupper())):
        checks.warn("FromAsCasing", begin.origin, f"'{word}' and '{keyword}' keywords' casing do not match")
    if begin.name:
        _check_description(begin.origin, "FROM", [begin.name], checks)


def _check_description(origin: types.Origin, keyword: str, names: list[str], checks: Checks) -> None:
    if origin.comments and origin.comments[-1].split(" ")[0] not in names:
        name = names[0] if len(names) == 1 else "<arg_key>"
        message = f"Comment for {keyword} should follow the format: `# {name} <description>`"
        checks.warn("InvalidDefinitionDescription", origin, message)


def _check_as_read(instruction: types.Instruction, checks: Checks) -> None:
    origin = instruction.origin
    match instruction:
        case types.From():
            _check_from(instruction, checks)
        case types.Maintainer():
            checks.warn("MaintainerDeprecated", origin, "Maintainer instruction is deprecated in favor of using label")
        case types.ArgInstruction():
            _check_description(origin, "ARG", [arg.name for arg in instruction.args], checks)


# --- what an instruction tells when it is carried out ----------------------------------------------------------------


class StageChecks:
    """Checks the instructions of one stage, one after the other."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._last: dict[type, types.Origin] = {}

    def before(self, instruction: types.Instruction) -> None:
        """Check what is known before the instruction's words are."""
        match instruction:
            case types.Cmd() | types.Entrypoint() | types.HealthCheck():
                self._check_once(instruction)
            case types.ArgInstruction():
                _check_secrets(instruction.origin, "ARG", [arg.name for arg in instruction.args], self._checks)

    def after(self, instruction: types.Instruction) -> None:
        """Check one whose words are well."""
        match instruction:
            case types.Env():
                _check_secrets(instruction.origin, "ENV", [pair.name for pair in instruction.pairs], self._checks)
                _check_legacy(instruction.origin, instruction.pairs, self._checks)
            case types.Label():
                _check_legacy(instruction.origin, instruction.pairs, self._checks)

    def _check_once(self, instruction: types.Cmd | types.Entrypoint | types.HealthCheck) -> None:
        origin = instruction.origin
        if before := self._last.get(type(instruction)):
            message = f"Multiple {origin.keyword} instructions should not be used in the same stage"
            message += " because only the last one will be used"
            self._checks.warn("MultipleInstructionsDisallowed", origin, message, before.span)
        self._last[type(instruction)] = origin


def _check_secrets(origin: types.Origin, keyword: str, names: list[str], checks: Checks) -> None:
    for name in names:
        if _SECRET.search(name) and not _NO_SECRET.search(name):
            message = f'Do not use ARG or ENV instructions for sensitive data ({keyword} "{name}")'
            checks.warn("SecretsUsedInArgOrEnv", origin, message)


def _check_legacy(origin: types.Origin, pairs: list[Pair], checks: Checks) -> None:
    if any(pair.legacy for pair in pairs):
        keyword = origin.keyword
        message = f'"{keyword} key=value" should be used instead of legacy "{keyword} key value" format'
        checks.warn("LegacyKeyValueFormat", origin, message)


def check_port(origin: types.Origin, port: str, checks: Checks) -> None:
    """Check what stands in an EXPOSE, with variables in their place."""
    number, _, protocol = port.partition("/")
    if number and protocol != protocol.lower():
        message = f"Defined protocol '{port}' in EXPOSE instruction should be lowercase"
        checks.warn("ExposeProtoCasing", origin, message)
    if ":" in number:
        message = "EXPOSE instruction should not define an IP address or host-port mapping"
        checks.warn("ExposeInvalidFormat", origin, f"{message}, found '{port}'")


# --- what variables tell ---------------------------------------------------------------------------------------------


def check_bases(
    dockerfile: Dockerfile, predefined: dict[str, str], variables: Mapping[str, str], checks: Checks
) -> None:
    """FROM: its variables, its platform, and whether it works without any build argument."""
    rules = WordRules(escape=dockerfile.escape)
    declared = {arg.name for instruction in dockerfile.global_args for arg in instruction.args} | set(variables)
    try:
        defaults: dict[str, str] | None = with_global_args(predefined, dockerfile.global_args, {}, rules)
    except DockerfileError:
        defaults = None  # one must be given: without it nothing is told of the others, as in the reference
    for stage in dockerfile.stages:
        begin = stage.begin
        for text in (begin.base, begin.platform):
            try:
                missing = expand(text, variables, rules).missing
            except DockerfileError as error:
                raise error.at(begin.origin.span) from None
            for name in sorted(missing - declared):
                hint = suggestion(name, declared, fold_case=False)
                checks.warn("UndefinedArgInFrom", begin.origin, f"FROM argument '{name}' is not declared{hint}")
        try:
            if defaults is not None:
                reference.parse(expand(begin.base, defaults, rules).text)
        except DockerfileError:
            defaults = None
        except HuskError:
            message = f"Default value for ARG {begin.base} results in empty or invalid base image name"
            checks.warn("InvalidDefaultArgInFrom", begin.origin, message)
        if begin.platform:
            _check_platform(begin, variables, rules, checks)


def _check_platform(begin: types.From, variables: Mapping[str, str], rules: WordRules, checks: Checks) -> None:
    found = expand(begin.platform, variables, rules)
    if found.used == {"TARGETPLATFORM"} and not found.missing and found.text == variables["TARGETPLATFORM"]:
        checks.warn("RedundantTargetPlatform", begin.origin, _redundant(begin.platform))
    if found.used or found.missing:
        return
    try:
        platform = parse_platform(found.text)
    except InvalidParameter:
        return  # which ends the build
    if platform.os not in begin.name and platform.architecture not in begin.name:
        checks.warn("FromPlatformFlagConstDisallowed", begin.origin, _constant(found.text))
