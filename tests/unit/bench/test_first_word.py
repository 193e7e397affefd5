"""A socket in front of an engine's: what is said is passed on, and when a build begins is noted."""

import socket
import threading

from bench.first_word import FirstWord


def _engine(path, listener):
    """Answers what it hears in capitals, until it hears no more."""
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        while data := client.recv(1 << 16):
            client.sendall(data.upper())
        client.close()


def _ask(path, *words):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        answers = []
        for word in words:
            client.sendall(word)
            answers.append(client.recv(1 << 16))
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
        return answers


def test_the_first_word_of_a_build_is_noted_and_all_is_passed_on(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "engine"))
        listener.listen()
        threading.Thread(target=_engine, args=(tmp_path, listener), daemon=True).start()
        with FirstWord(tmp_path / "engine", tmp_path) as door:
            assert _ask(door.path, b"get /_ping", b"more") == [b"GET /_PING", b"MORE"]
            assert door.said is None
            assert _ask(door.path, b"POST /v1.51/grpc HTTP/1.1") == [b"POST /V1.51/GRPC HTTP/1.1"]
            first = door.said
            assert first is not None
            _ask(door.path, b"POST /build?t=x HTTP/1.1")
            assert door.said == first
        assert not door.path.exists()
        listener.shutdown(socket.SHUT_RDWR)
