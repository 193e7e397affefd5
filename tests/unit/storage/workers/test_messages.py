"""Jobs and answers come out as they went in, and nothing else comes out."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from husk.storage.workers.answers import Done, Failed, FileContent, FileStatus, Missing, UnpackedLayer
from husk.storage.workers.jobs import PackJob, PutJob, UnpackJob
from husk.storage.workers.messages import decode_answer, decode_job, encode, printable
from husk.storage.workers.parts import Bind, Memory
from husk.storage.workers.pipes import AnswerReader
from tests.support.work import memory_for

# What Python makes of names of files that are not UTF-8 is among them.
names = st.binary(max_size=30).map(lambda name: name.decode("utf-8", "surrogateescape"))
binds = st.builds(Bind, names, names, st.booleans())
memory = st.builds(Memory, st.lists(names), st.integers(0, 1 << 22))
jobs = st.one_of(
    st.builds(UnpackJob, names, names, st.text(), st.integers(0, 1 << 60)),
    st.builds(PackJob, names, st.lists(binds), names, memory, st.booleans(), st.booleans()),
    st.builds(
        PutJob,
        root=names,
        binds=st.lists(binds),
        path=names,
        memory=memory,
        owner=st.none() | st.tuples(st.integers(0, 1 << 32), st.integers(0, 1 << 32)),
        length=st.none() | st.integers(0, 1 << 60),
    ),
)
answers = st.one_of(
    st.builds(Done),
    st.builds(Missing),
    st.builds(Failed, names),
    st.builds(FileStatus, names, st.integers(0), st.integers(0), st.integers(), names),
    st.builds(UnpackedLayer, st.text(), st.integers(0), st.text(), st.integers(0), st.booleans()),
)


@given(jobs)
def test_a_job_comes_out_as_it_went_in(job):
    line = encode(job)
    assert line.isascii() and line.count(b"\n") == 1
    assert decode_job(line) == job


@given(st.lists(answers), st.integers(1, 50))
def test_answers_come_out_of_pieces_of_any_size(said, size):
    data = b"".join(map(encode, said))
    found, reader = [], AnswerReader()
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
        while (answer := reader.next()) is not None:
            found.append(answer)
    assert found == said


def test_what_is_here_of_a_large_answer_is_not_copied_for_each_piece_that_comes():
    reader = AnswerReader()
    line = encode(FileContent(bytes(1 << 20)))

    def feed(piece: bytes) -> None:
        reader.feed(piece)
        assert reader.next() is None

    feed(line[:-2000])
    feed(line[-2000:-1000])
    assert memory_for(lambda: feed(line[-1000:-1])) < len(line) // 2
    reader.feed(line[-1:])
    assert reader.next() == FileContent(bytes(1 << 20))


def test_an_answer_that_is_cut_off_is_none():
    reader = AnswerReader()
    reader.feed(encode(Failed("x"))[:-1])
    assert reader.next() is None


@pytest.mark.parametrize(
    "job",
    [
        {"type": "unpack", "directory": "/d"},
        {"type": "unpack", "directory": "/d", "blob": "/b", "more": 1},
        {"type": "unpack", "directory": "/d", "blob": "/b", "limit": "1"},
        {"type": "unpack", "directory": 1, "blob": "/b"},
        {"type": "erase", "directory": "/d"},
        {"type": "done"},
        ["unpack", "/d", "/b"],
    ],
)
def test_what_is_no_job_is_refused(job):
    with pytest.raises(msgspec.ValidationError):
        decode_job(json.dumps({"module": UnpackJob.__module__, "name": "UnpackJob", "job": job}).encode())


@pytest.mark.parametrize("name", ["Bind", "Job.worker", "annotations", "nothing"])
def test_what_is_no_type_of_jobs_is_refused(name):
    job = {"type": "unpack", "directory": "/d", "blob": "/b"}
    with pytest.raises(msgspec.ValidationError):
        decode_job(json.dumps({"module": UnpackJob.__module__, "name": name, "job": job}).encode())
    with pytest.raises(msgspec.ValidationError):
        decode_job(json.dumps(job).encode())


@pytest.mark.parametrize(
    "document", [{"type": "blob", "digest": "x"}, {"type": "unpack", "directory": "/", "blob": "/"}]
)
def test_what_is_no_answer_is_refused(document):
    with pytest.raises(msgspec.ValidationError):
        decode_answer(json.dumps(document).encode())


def test_a_message_for_clients_has_one_line_and_no_lone_surrogates():
    assert printable("no such file: caf\udce9\nx") == "no such file: caf\\udce9 x"
