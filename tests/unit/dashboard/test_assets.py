import gzip
from typing import cast

from husk.api.http.request import Request
from husk.api.http.response import Response
from husk.dashboard.assets import STATIC, Assets

# What all assets may take together, compressed, before pages get heavy.
LARGEST = 400_000


class Asked:
    def __init__(self, **headers: str) -> None:
        self.headers = headers

    def header(self, name: str) -> str:
        return self.headers.get(name.replace("-", "_"), "")


def asked(assets: Assets, path: str, **headers: str) -> Response | None:
    return assets.answer(cast(Request, Asked(**headers)), path, {})


def test_all_assets_together_are_small() -> None:
    assets = Assets()
    assert sum(len(assets.compressed(name)) for name in assets.names) <= LARGEST


def test_a_file_is_found_by_its_path_alone() -> None:
    assets = Assets()
    path = assets.path("live.js")
    answer = asked(assets, path)
    assert answer is not None and answer.body == (STATIC / "live.js").read_bytes()
    for other in ("/static/live.js", path + "x", "/static/../live.js", path.replace("live.js", "../server.py")):
        assert asked(assets, other) is None


def test_who_takes_it_gets_it_compressed() -> None:
    assets = Assets()
    answer = asked(assets, assets.path("style.css"), accept_encoding="gzip, br")
    assert answer is not None
    assert b"Content-Encoding: gzip" in answer.fields
    assert gzip.decompress(answer.body) == (STATIC / "style.css").read_bytes()


def test_a_changed_file_has_another_path(tmp_path) -> None:
    (tmp_path / "a.css").write_text("a {}")
    before = Assets(tmp_path).path("a.css")
    (tmp_path / "a.css").write_text("b {}")
    assert Assets(tmp_path).path("a.css") != before


def test_no_asset_has_an_outside_address() -> None:
    for path in STATIC.rglob("*"):
        if path.suffix in (".css", ".js") and "vendor" not in path.parts:
            text = path.read_text().replace("http://www.w3.org/", "")
            assert "http://" not in text and "https://" not in text and "//cdn" not in text, path
