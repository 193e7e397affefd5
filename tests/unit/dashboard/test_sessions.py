import pytest

from husk.dashboard.sessions import (
    LINK_LIFE,
    SESSION_IDLE,
    SESSION_LIFE,
    BrowserSession,
    BrowserSessions,
    TooManyGuesses,
    placed,
)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> BrowserSessions:
    return BrowserSessions(clock)


def begun(sessions: BrowserSessions, peer: str = "") -> tuple[str, BrowserSession]:
    found = sessions.sign_in(sessions.make_link(), peer)
    assert found is not None
    return found


def test_a_link_begins_a_session(sessions: BrowserSessions) -> None:
    secret, session = begun(sessions)
    assert sessions.find(secret, session.place) is session


def test_a_link_works_once(sessions: BrowserSessions) -> None:
    token = sessions.make_link()
    assert sessions.sign_in(token) is not None
    assert sessions.sign_in(token) is None


def test_a_link_grows_old(sessions: BrowserSessions, clock: Clock) -> None:
    token = sessions.make_link()
    clock.now += LINK_LIFE + 1
    assert sessions.sign_in(token) is None


def test_no_more_links_are_kept_than_some(sessions: BrowserSessions) -> None:
    first = sessions.make_link()
    for _ in range(16):
        sessions.make_link()
    assert sessions.sign_in(first) is None


@pytest.mark.parametrize("secret", ["", "x", "\udcff"])
def test_what_is_no_secret_finds_no_session(sessions: BrowserSessions, secret: str) -> None:
    _, session = begun(sessions)
    assert sessions.find(secret, session.place) is None


def test_a_session_ends_when_nobody_uses_it(sessions: BrowserSessions, clock: Clock) -> None:
    secret, session = begun(sessions)
    clock.now += SESSION_IDLE - 1
    assert sessions.find(secret, session.place)
    clock.now += SESSION_IDLE - 1
    assert sessions.find(secret, session.place)
    clock.now += SESSION_IDLE + 1
    assert sessions.find(secret, session.place) is None


def test_a_session_with_an_open_stream_is_used(sessions: BrowserSessions, clock: Clock) -> None:
    secret, session = begun(sessions)
    session.streams = 1
    clock.now += SESSION_IDLE + 1
    assert sessions.alive(session)
    assert sessions.find(secret, session.place) is session


def test_no_session_lives_for_ever(sessions: BrowserSessions, clock: Clock) -> None:
    secret, session = begun(sessions)
    session.streams = 1
    clock.now += SESSION_LIFE + 1
    assert not sessions.alive(session)
    assert sessions.find(secret, session.place) is None


def test_who_signs_out_is_out(sessions: BrowserSessions) -> None:
    secret, session = begun(sessions)
    sessions.sign_out(session)
    assert sessions.find(secret, session.place) is None
    assert not sessions.alive(session)


def test_there_is_a_limit_on_guesses_of_one_address(sessions: BrowserSessions, clock: Clock) -> None:
    for _ in range(10):
        assert sessions.sign_in("guess", "10.0.0.1") is None
    with pytest.raises(TooManyGuesses):
        sessions.sign_in("guess", "10.0.0.1")
    assert sessions.sign_in("guess", "10.0.0.2") is None
    clock.now += 61
    assert sessions.sign_in("guess", "10.0.0.1") is None


def test_nobodys_guesses_lock_out_who_has_a_link(sessions: BrowserSessions) -> None:
    link = sessions.make_link()
    for number in range(60):
        sessions.sign_in("guess", f"10.0.0.{number % 6}")
    with pytest.raises(TooManyGuesses):
        sessions.sign_in("guess", "10.0.0.1")
    assert sessions.sign_in(link, "10.0.0.1") is not None


def test_there_is_a_limit_on_guesses_of_all(sessions: BrowserSessions) -> None:
    for number in range(60):
        sessions.sign_in("guess", f"10.0.0.{number}")
    with pytest.raises(TooManyGuesses):
        sessions.sign_in("guess", "10.9.9.9")


def test_the_session_that_was_not_used_longest_makes_room(sessions: BrowserSessions, clock: Clock) -> None:
    (first, kept), (second, dropped) = begun(sessions), begun(sessions)
    clock.now += 1
    assert sessions.find(first, kept.place)
    for _ in range(63):
        begun(sessions)
    assert sessions.find(second, dropped.place) is None
    assert sessions.find(first, kept.place)


def test_the_token_of_forms_is_the_sessions_own(sessions: BrowserSessions) -> None:
    (_, one), (_, other) = begun(sessions), begun(sessions)
    assert one.proves(one.csrf)
    assert not one.proves(other.csrf)
    assert not one.proves("") and not one.proves("\udcff")


def test_notices_are_told_once(sessions: BrowserSessions) -> None:
    _, session = begun(sessions)
    for number in range(20):
        session.notify(f"{number}")
    assert [notice.text for notice in session.take_notices()] == [f"{number}" for number in range(12, 20)]
    assert session.take_notices() == []


def test_a_session_has_a_place_of_its_own_that_nobody_guesses(sessions: BrowserSessions) -> None:
    (secret, one), (_, other) = begun(sessions), begun(sessions)
    assert one.place != other.place and len(one.place) == 44
    assert sessions.find(secret, one.place) is one
    assert sessions.find(secret, other.place) is None
    assert sessions.find(secret, "") is None


@pytest.mark.parametrize(
    ("began", "used", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "172.17.0.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8::1", "2001:db8:0::1", True),
        ("2001:db8::1", "2001:db8::2", False),
        ("127.0.0.1", "::1", True),
        ("127.0.0.1", "172.17.0.2", False),
        ("127.0.0.1", "", False),
    ],
)
def test_a_session_belongs_to_the_address_that_began_it(
    sessions: BrowserSessions, began: str, used: str, same: bool
) -> None:
    secret, session = begun(sessions, began)
    assert (sessions.find(secret, session.place, used) is session) == same
    assert sessions.find(secret, session.place, began) is session, "what others try does not end it"


def test_the_place_is_the_first_word_of_a_path() -> None:
    place = f"~{'a' * 43}"
    assert placed(f"/{place}/containers/~x") == (place, "/containers/~x")
    assert placed(f"/{place}") == (place, "")
    assert placed("/containers") == ("", "/containers")
    assert placed(f"/{place}b/containers")[0] == "" and placed(f"/x/{place}/")[0] == ""
