import pytest

from husk.client.progress import BuildProgress, PullProgress, build_progress, progress
from husk.errors import CommandFailed, SystemFault

ID = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            {"status": "Downloading", "id": "abc", "progressDetail": {"current": 1, "total": 2}},
            PullProgress(status="Downloading", id="abc", current=1, total=2),
        ),
        ({"status": "Digest: sha256:1"}, PullProgress(status="Digest: sha256:1", digest="sha256:1")),
        ({"progressDetail": {}, "aux": {"Digest": "d"}}, PullProgress(status="", digest="d")),
        ({"stream": "Loaded image: a:1\n"}, PullProgress(status="Loaded image: a:1", image="a:1")),
        ({"stream": "Loaded image ID: sha256:1\n"}, PullProgress(status="Loaded image ID: sha256:1", image="sha256:1")),
        ({"status": ID}, PullProgress(status=ID, image=ID)),
    ],
)
def test_lines_of_images(line, told):
    assert progress(line) == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"stream": "Step 2/5 : RUN x\n"}, BuildProgress(text="Step 2/5 : RUN x\n", step=2, steps=5)),
        ({"stream": "hello\n"}, BuildProgress(text="hello\n")),
        ({"aux": {"ID": ID}}, BuildProgress(image=ID)),
        ({"stream": ID + "\n"}, BuildProgress(text=ID + "\n", image=ID)),
        ({"status": "Pulling", "id": "x"}, BuildProgress(pull=PullProgress(status="Pulling", id="x"))),
    ],
)
def test_lines_of_builds(line, told):
    assert build_progress(line) == told


def test_a_failure_in_the_stream():
    with pytest.raises(SystemFault, match="denied"):
        progress({"error": "denied", "errorDetail": {"message": "denied"}})


def test_a_command_that_failed_tells_its_code():
    with pytest.raises(CommandFailed, match="non-zero") as failed:
        build_progress({"error": "returned a non-zero code: 3", "errorDetail": {"code": 3, "message": ""}})
    assert failed.value.code == 3


def test_a_command_that_writes_a_step_of_thousands_of_digits_is_no_step():
    assert build_progress({"stream": f"Step {'9' * 5000}/1 : "}).step == 0
