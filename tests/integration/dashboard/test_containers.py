"""Containers in the dashboard of a real daemon."""

import signal
import subprocess

from husk.dashboard.link_files import NAME
from tests.support.daemon import Daemon
from tests.support.dashboard import Browser, links, new_link
from tests.support.husk import command, environment
from tests.support.waiting import until


def state(daemon: Daemon, name: str) -> str:
    return str(daemon.http("GET", f"/containers/{name}/json").json()["State"]["Status"])


def until_state(daemon: Daemon, name: str, wanted: str) -> None:
    until(lambda: state(daemon, name) == wanted, wanted)


def test_a_container_is_listed_and_lives_as_it_is_told(shown: Daemon, browser: Browser) -> None:
    labels = ("--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service=front")
    shown.docker("run", "-d", "--name", "web", "-p", "127.0.0.1::80", *labels, "busybox", "sleep", "600")
    text = browser.get("/containers").text
    assert "web" in text and "shop" in text and "front" in text and "→80/tcp" in text
    for verb, becomes in (
        ("pause", "paused"),
        ("unpause", "running"),
        ("kill", "exited"),
        ("start", "running"),
        ("restart", "running"),
    ):
        assert browser.post(f"/containers/web/{verb}").status == 303
        until_state(shown, "web", becomes)
    page = browser.post("/containers/web/remove")
    assert page.status == 409 and "running" in page.text
    assert browser.post("/containers/web/remove", {"force": "1"}).status == 303
    assert "web was removed." in browser.get("/containers").text
    assert browser.get("/containers/web/remove").status == 404


def test_what_happens_is_told_to_open_pages(shown: Daemon, browser: Browser) -> None:
    connection, answer = browser.open("GET", "/live")
    try:
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
        shown.docker("create", "--name", "box", "busybox")
        said = b""
        while b"create" not in said:
            piece = answer.readline()
            assert piece, said
            said += piece
        assert b'"name":"box"' in said
    finally:
        connection.close()


def test_a_link_of_the_daemon_is_used_once(shown: Daemon) -> None:
    link = new_link(shown)
    assert Browser(link).sign_in().status == 200
    assert Browser(link).sign_in().status == 403


def test_the_api_and_the_dashboard_are_two_doors(shown: Daemon, browser: Browser) -> None:
    assert browser.get("/v1.43/containers/json").status == 404
    assert browser.get("/_ping").status == 404


def test_a_daemon_without_tls_shows_nothing_to_others(shown: Daemon) -> None:
    done = subprocess.run(
        command(
            "serve", "--validate", "--config-file", str(shown.directory / "daemon.json"), "--dashboard", "0.0.0.0:1"
        ),
        capture_output=True,
        text=True,
        env=environment(shown),
        timeout=60,
    )
    assert done.returncode == 1 and "without TLS" in done.stderr


def test_a_process_of_its_own_shows_a_running_daemon(shown: Daemon) -> None:
    shown.docker("create", "--name", "seen", "busybox")
    with subprocess.Popen(
        command("dashboard", "--no-open", "--read-only"), stdout=subprocess.PIPE, text=True, env=environment(shown)
    ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            link = next(line.strip() for line in lines if "/sign-in?token=" in line)
            own = Browser(link)
            assert own.sign_in().status == 200
            assert "seen" in own.get("/containers").text
            assert own.post("/containers/seen/start").status == 403
            process.send_signal(signal.SIGUSR1)
            assert Browser(next(line.strip() for line in lines if "/sign-in?token=" in line)).sign_in().status == 200
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    shown.remove_containers()


def test_links_are_not_in_the_log_of_requests(shown: Daemon, browser: Browser) -> None:
    secret = browser.cookie.partition("=")[2]
    assert secret not in shown.log_path.read_text(errors="replace")
    assert "token=" not in shown.log_path.read_text(errors="replace")


def test_a_link_is_left_for_the_daemons_user_alone(shown: Daemon) -> None:
    """A reader of the journal is no administrator by that."""
    link = new_link(shown)
    path = shown.config.exec_root / NAME
    assert links(shown) == [link] and path.stat().st_mode & 0o777 == 0o600
    assert f"cat {path}" in shown.log_path.read_text(errors="replace")
