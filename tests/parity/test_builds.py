"""A corpus of Dockerfiles: configuration, history and files of each are what dockerd 28 makes of it."""

import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import classic_parity
from tests.support.build_parity import Corpus, answers, cases, classic_cases, wrong
from tests.support.building import needs_buildx
from tests.support.daemon import Daemon
from tests.support.parity import ABSENT, ANY, Difference, compare

pytestmark = needs_buildx

ATTRIBUTES = "dockerd packs no attributes but capabilities; BuildKit itself keeps them, as we do"
LINK = "dockerd cannot merge and copies instead; BuildKit itself puts the layer on top, whatever is below"
TOUCHED = "dockerd makes a place to mount on, removes it, and leaves that to be seen"
BETTER = "tells more of what is wrong"
DIFFERENCES = (
    Difference("$.*.layers(*).*noted", "0644 0:0 1500000000 file *", "* SCHILY.xattr.user.note=kept", ATTRIBUTES),
    Difference("$.copy-link-target.layers(2).real*", ANY, ABSENT, LINK),
    Difference("$.copy-link-target.layers(2).sym*", ABSENT, ANY, LINK),
    Difference("$.mount-bind.layers(8).wd", "directory 0755 0:0 now", ABSENT, TOUCHED),
    Difference("$.mount-points-left.layers(3)", ABSENT, {}, TOUCHED),
    Difference("$.mount-points-left.layers(3).etc", "directory 0755 0:0 now", ABSENT, TOUCHED),
)
CLASSIC_WAY = "the answers are BuildKit's, and by this door it is as with dockerd's classic builder"
REFUSALS = (
    Difference("$.copy-bad-mode", "invalid syntax", "invalid chmod parameter: *", BETTER),
    Difference("$.copy-onto-file", "*: /*/merged/f", "*: /f", "dockerd tells a path of the host"),
    Difference("$.env-unclosed", "*unsupported modifier (*) in substitution", "*syntax error: missing '}'", BETTER),
    Difference("$.copy-from-later", "built", "cannot copy from stage *", CLASSIC_WAY),
    Difference("$.copy-many-to-file", "built", "When using COPY with more than one source file, *", CLASSIC_WAY),
    Difference("$.from-bad-image", "failed to parse stage name *: invalid *", "invalid *", CLASSIC_WAY),
    Difference("$.healthcheck-retries-text", "* strconv.ParseInt: *", "* --retries needs a number, *", BETTER),
    Difference(
        "$.run-network", "* invalid network mode *", "* unsupported network mode * (did you mean host?)", BETTER
    ),
    Difference("$.run-network-host", "failed to load LLB: *", "network.host is not allowed", "nothing is loaded here"),
    Difference("$.run-nothing", "built", "The command '/bin/sh -c' returned a non-zero code: 2", CLASSIC_WAY),
    Difference("$.run-not-found", "*exit code: 1", "*exit code: 127", "as a shell and `docker run` say it"),
    Difference("$.run-ssh-missing", "unset ssh *", "no SSH key 'default' forwarded from the client: unset *", BETTER),
    Difference("$.shell-string", "*: SHELL requires *", "*: SHELL requires *, not: SHELL /bin/sh", BETTER),
    Difference("$.user-unknown", "process * unable to find *", "unable to find *", "no process came to be"),
    Difference("$.workdir-file", "lstat /f/x: *", "f/x: not a directory", "another system call"),
)

EARLY = "what is wrong in the file is told before anything is carried out"
MORE = "BuildKit's options work by this door, too"
OURS = "what the runtime says is told as the command's, with its exit status"
# What dockerd's classic builder says, and ours does not.
CLASSIC = {
    "add-checksum": "steps are carried out side by side: one may fail before those above it have ended",
    "copy-chmod": MORE,
    "copy-chown-unknown": "an unknown owner is root, as BuildKit has it",
    "copy-from-nobody": EARLY,
    "copy-glob-many-to-file": "the place is made a directory, as BuildKit does it",
    "copy-many-to-file": EARLY,
    "copy-outside": EARLY,
    "env-bad": EARLY,
    "expose-bad": EARLY,
    "extended": "an image in the middle of another has an id of its own until a build ends with it",
    "fails-missing": OURS,
    "fails-notexec": OURS,
    "fails-parallel": "stages are built side by side",
    "fails-shell": OURS,
    "heredoc": "dockerd gives the shell no text",
    "ignored-bang": "what is no pattern is refused, as BuildKit does it",
    "no-dockerfile": "the request is wrong (400), dockerd says that it has failed itself (500)",
    "nocache": "the same step has the same id",
    "run-mount": MORE,
    "run-network": MORE,
    "same-stages": "the last step has the id of the image, the one in the middle that is the same has its own",
    "volume-root": "a volume in the place of everything is none while the image is built",
    "workdir-user": "its owner is the user, as BuildKit has it",
    "wrong-copy-later": EARLY,
}


@pytest.fixture(scope="module")
def corpus() -> Iterator[Corpus]:
    with tempfile.TemporaryDirectory(prefix="hk-parity-") as directory, Daemon() as daemon:
        yield Corpus(daemon, Path(directory))


def test_the_corpus_is_large_and_its_answers_are_complete() -> None:
    assert len(cases()) >= 60
    assert cases().keys() == answers()["built"].keys()
    assert {**wrong("read"), **wrong("built")}.keys() == answers()["refused"].keys()


def test_images_by_buildkits_door(corpus: Corpus) -> None:
    compare(answers()["built"], corpus.build(cases()), *DIFFERENCES)


def test_images_by_the_classic_door(corpus: Corpus) -> None:
    options = cases()
    names = classic_cases()
    with ThreadPoolExecutor(4) as threads:
        made = threads.map(lambda name: corpus.build_classic(name, options[name]), names)
    theirs = answers()["built"]
    file = Difference("$.copy-plain.layers(6).all/.file-to-build", ABSENT, ANY, "a Dockerfile is in its context")
    compare({name: theirs[name] for name in names}, dict(zip(names, made, strict=True)), file)


def test_what_the_classic_builder_says(corpus: Corpus) -> None:
    theirs, ours = classic_parity.answers(), classic_parity.said_of_all(corpus.engine)
    assert ours.keys() == theirs.keys() == classic_parity.cases().keys()
    for name in ours.keys() - CLASSIC:
        assert ours[name] == theirs[name], name
    assert [name for name in CLASSIC if ours[name] == theirs[name]] == [], "no longer different"


def test_what_is_said_of_wrong_dockerfiles(corpus: Corpus) -> None:
    with ThreadPoolExecutor(4) as threads:
        ours = dict(zip(wrong("read"), threads.map(corpus.refuse, wrong("read").values()), strict=True))
        ours |= dict(zip(wrong("built"), threads.map(corpus.complain, wrong("built").values()), strict=True))
    theirs = answers()["refused"]
    messages = [{name: message(text) for name, text in said.items()} for said in (theirs, ours)]
    compare(messages[0], messages[1], *REFUSALS)
    # Which line it is, wherever both say so. Of two directives dockerd shows the first, we the second.
    lines = {name: (line(theirs[name]), line(text)) for name, text in ours.items() if name != "directive-twice"}
    assert {name: said for name, said in lines.items() if all(said) and said[0] != said[1]} == {}


def message(text: str) -> str:
    """The last line, without what stands before every such message, and without names that are new each time."""
    last = (text.splitlines() or [""])[-1]
    last = re.sub(r"^ERROR: failed to build: failed to (solve|run Build function): ", "", last)
    last = re.sub(r"^failed to parse Dockerfile: ", "", last)
    return re.sub(r"^failed to compute cache key: failed to calculate checksum of ref \S+ ", "", last)


def line(text: str) -> str:
    found = re.search(r"^Dockerfile:(\d+)$|parse error on line (\d+)", text, re.MULTILINE)
    return next((group for group in found.groups() if group), "") if found else ""
