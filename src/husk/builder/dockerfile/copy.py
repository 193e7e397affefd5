"""COPY and ADD: what they become in terms of file operations."""

import posixpath
import re
from collections.abc import Callable

from msgspec.structs import replace

from husk.builder.dockerfile import git_refs
from husk.builder.dockerfile.errors import DockerfileError
from husk.builder.dockerfile.instructions import Add, Copy
from husk.builder.dockerfile.lines import Heredoc
from husk.builder.dockerfile.state import StageState, inline_file, locations, shown
from husk.builder.dockerfile.words import WordRules, expand
from husk.builder.graph.graph import Graph
from husk.builder.graph.operations import Edge, Files, Merge, Operation, Source
from husk.builder.store.file_actions import NONE, FileAction, Owner, id_of
from husk.builder.store.file_actions import Copy as CopyFiles
from husk.text.urls import split_url

IN_TEXTS = WordRules(quotes=False)  # a quote in a file is a quote
UNNAMED = "__unnamed__"
_SYMBOLIC = re.compile(r"[ugoa]*(?:[-+=](?:[rwxXst]*|[ugo]))+")


class _Inputs:
    """The inputs of one file operation, each once."""

    def __init__(self) -> None:
        self.edges: list[Edge] = []

    def number(self, edge: Edge | None) -> int:
        if edge is None:
            return NONE
        if edge not in self.edges:
            self.edges.append(edge)
        return self.edges.index(edge)


class CopyConverter:
    """Carries out one COPY or ADD on a stage."""

    def __init__(self, graph: Graph, state: StageState, instruction: Copy | Add, *, classic: bool = False) -> None:
        self._classic = classic
        self._graph = graph
        self._state = state
        self._instruction = instruction
        self._is_add = isinstance(instruction, Add)
        self._chown = state.text(instruction.chown)
        self._chmod = state.text(instruction.chmod)
        self._mode, self._symbolic_mode = parse_mode(self._chmod)
        self._excludes = [state.text(pattern) for pattern in instruction.excludes]
        self._paths = [state.text(path) for path in instruction.files.paths]
        self._written_destination = state.text(instruction.files.destination)
        self._destination = absolute(self._written_destination, state.directory)

    @property
    def context_paths(self) -> list[str]:
        """The paths that are taken from the build context, or from wherever else the instruction copies."""
        return [posixpath.normpath("/" + path) for path in self._paths if not _is_remote(path)]

    def carry_out(self, source: Edge | None, *, from_trigger: bool) -> None:
        """Copy, from what is given where it is not said otherwise."""
        state, instruction = self._state, self._instruction
        self._check()
        if self._classic:
            self._check_classic()
        name = state.step_name(
            shown(instruction.origin.code, state.env, state.rules),
            from_trigger=from_trigger,
        )
        linked = instruction.link and not self._chmod
        base = None if linked else state.root
        inputs = _Inputs()
        current = inputs.number(base)
        copies = [self._copy(path, source, name) for path in self._paths]
        copies += [self._copy_of_text(heredoc) for heredoc in instruction.files.heredocs]
        numbered = [(inputs.number(edge), copy) for edge, copy in copies]
        user, group = _owners(self._chown, current)
        actions: list[FileAction] = []
        for position, (second, copy) in enumerate(numbered):
            last = position + 1 == len(numbered)
            action = FileAction(
                action=copy(user, group),
                input=current,
                second_input=second,
                output=0 if last else NONE,
            )
            actions.append(action)
            current = len(inputs.edges) + position
        edge = self._add(Files(actions), inputs.edges, name)
        state.root = self._linked(edge, name) if linked else edge
        state.remember(self._history(), layer=True)

    def _add(self, body: Files | Merge, inputs: list[Edge], name: str, group: str = "") -> Edge:
        return self._graph.add(
            Operation(body, inputs, self._state.platform),
            name=name,
            group=group,
            ignore_cache=self._state.ignore_cache,
            locations=locations(self._instruction.origin.span),
        )

    def _linked(self, edge: Edge, name: str) -> Edge:
        """`--link`: a layer of its own, which fits onto any base."""
        if self._state.root is None:
            return edge
        return self._add(Merge(), [self._state.root, edge], name.replace("] ", "] LINK ", 1), group=edge.digest)

    def _check(self) -> None:
        if not isinstance(self._instruction, Add) or not self._instruction.checksum:
            return
        if len(self._paths) != 1:
            raise DockerfileError("checksum can't be specified for multiple sources")
        if not _is_remote(self._paths[0]):
            raise DockerfileError("checksum requires HTTP(S) or Git sources")

    def _check_classic(self) -> None:
        """Raise DockerfileError for a copy that dockerd's classic builder refuses, and BuildKit does not."""
        keyword = "ADD" if self._is_add else "COPY"
        if len(self._paths) + len(self._instruction.files.heredocs) > 1 and not self._written_destination.endswith("/"):
            message = f"When using {keyword} with more than one source file, the destination must be a directory"
            raise DockerfileError(f"{message} and end with a /")
        if isinstance(self._instruction, Copy) and self._instruction.source:
            return
        for path in self._paths:
            if not _is_remote(path) and posixpath.normpath(path).split("/")[0] == "..":
                raise DockerfileError(f"{keyword} failed: forbidden path outside the build context: {path} ()")

    # --- sources -----------------------------------------------------------------------------------------------------

    def _copy(self, path: str, source: Edge | None, name: str) -> "_Copy":
        repository = git_refs.parse(path)
        if repository and not repository.like_a_path:
            return self._copy_of_repository(repository, name)
        if _is_remote(path):
            return self._copy_of_address(path, name)
        return self._copy_of_path(path, source)

    def _copy_of_path(self, path: str, source: Edge | None) -> "_Copy":
        include: list[str] = []
        required: list[str] = []
        if isinstance(self._instruction, Copy) and self._instruction.parents:
            parent, pivot, pattern = path.partition("/./")
            if not pivot:
                parent, pattern = "/", path
            pattern = posixpath.normpath("/" + pattern).lstrip("/")
            include = [pattern]
            if not _has_wildcards(parent) and not _has_wildcards(pattern):
                required = [posixpath.normpath(f"/{parent}/{pattern}")]
            path = parent
        said = self._instruction.unpack if isinstance(self._instruction, Add) else False
        from_path = posixpath.normpath("/" + path.lstrip("/"))
        unpack = self._is_add if said is None else said
        return source, lambda user, group: replace(
            self._whole(from_path, user, group, unpack=unpack),
            follow_links=True,
            contents_only=True,
            wildcards=True,
            may_match_nothing=not self._classic or len(self._paths) > 1,
            include=include,
            required=required,
        )

    def _copy_of_address(self, address: str, name: str) -> "_Copy":
        if not isinstance(self._instruction, Add):
            raise DockerfileError("source can't be a URL for COPY")
        try:
            file = posixpath.basename(split_url(address).path) or UNNAMED
        except ValueError as error:
            raise DockerfileError(f"{address} is no address: {str(error).lower()}") from None
        attributes = {"http.filename": file}
        if checksum := self._state.text(self._instruction.checksum):
            attributes["http.checksum"] = checksum
        edge = self._source(Source(address, attributes), name)
        unpack = bool(self._instruction.unpack)
        return edge, lambda user, group: self._whole("/" + file, user, group, unpack=unpack)

    def _copy_of_repository(self, repository: git_refs.GitRef, name: str) -> "_Copy":
        if not isinstance(self._instruction, Add):
            raise DockerfileError("source can't be a git ref for COPY")
        keep, also = self._instruction.keep_git_dir, repository.keep_git_dir
        if None not in (keep, also) and keep != also:
            raise DockerfileError("inconsistent keep-git-dir configuration")
        checksum = self._state.text(self._instruction.checksum)
        if checksum and repository.checksum and checksum != repository.checksum:
            raise DockerfileError(f'checksum mismatch "{checksum}" != "{repository.checksum}"')
        source = git_refs.source_of(
            replace(repository, checksum=checksum or repository.checksum, keep_git_dir=bool(keep or also))
        )
        edge = self._source(source, name)
        return edge, lambda user, group: self._whole("/", user, group)

    def _copy_of_text(self, heredoc: Heredoc) -> "_Copy":
        text = expand(heredoc.text, self._state.env, IN_TEXTS).text if heredoc.expand else heredoc.text
        edge = inline_file(self._graph, self._state, self._instruction, heredoc.name, text, mode=0o644)
        return edge, lambda user, group: self._whole("/" + heredoc.name, user, group)

    def _source(self, source: Source, name: str) -> Edge:
        return self._graph.add(Operation(source), name=name, locations=locations(self._instruction.origin.span))

    def _whole(self, path: str, user: Owner | None, group: Owner | None, *, unpack: bool = False) -> CopyFiles:
        return CopyFiles(
            source=path,
            destination=self._destination,
            user=user,
            group=group,
            mode=self._mode,
            symbolic_mode=self._symbolic_mode,
            make_parents=True,
            unpack=unpack,
            exclude=self._excludes,
        )

    def _history(self) -> str:
        words = ["ADD" if self._is_add else "COPY"]
        if isinstance(self._instruction, Copy) and self._instruction.parents:
            words.append("--parents")
        words += [f"--chown={self._chown}"] if self._chown else []
        words += [f"--chmod={self._chmod}"] if self._chmod else []
        words += self._paths
        words += [f"<<{heredoc.name}" for heredoc in self._instruction.files.heredocs]
        return " ".join([*words, self._written_destination, "# buildkit"])


_Copy = tuple[Edge | None, Callable[[Owner | None, Owner | None], CopyFiles]]


def absolute(path: str, directory: str) -> str:
    """A destination: a slash at its end says that it is a directory, and stays."""
    if path in ("", "."):
        path = "./"
    joined = posixpath.normpath(posixpath.join("/", directory, path))
    joined = "/" + joined.lstrip("/")
    return joined + "/" if path.endswith("/") and joined != "/" else joined


def _owners(chown: str, owner_input: int) -> tuple[Owner | None, Owner | None]:
    if not chown:
        return None, None
    user, colon, group = chown.partition(":")
    return owner_of(user, owner_input), owner_of(group, owner_input) if colon else None


def owner_of(text: str, owner_input: int) -> Owner | None:
    """A user or group by its number, or by a name to be looked up in an input."""
    if not text:
        return None
    number = id_of(text)
    return Owner(name=text, input=owner_input) if number is None else Owner(number=number)


def _is_remote(path: str) -> bool:
    return path.startswith(("http://", "https://")) or git_refs.parse(path) is not None


def _has_wildcards(path: str) -> bool:
    escaped = False
    for letter in path:
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter in "*?[":
            return True
    return False


def parse_mode(text: str) -> tuple[int | None, str]:
    """Read a `--chmod`: the mode as a number, or else as text for `chmod`."""
    if not text:
        return None, ""
    if re.fullmatch(r"[0-7]+", text):
        number = int(text, 8)
        if number <= 0o7777:
            return number, ""
    elif all(_SYMBOLIC.fullmatch(clause) for clause in text.split(",")):
        return None, text
    raise DockerfileError(f"invalid chmod parameter: '{text}'. it should be octal string and between 0 and 07777")
