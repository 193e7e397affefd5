"""The door of the routes: a module is loaded with the first path that may mean one of its operations."""

import pkgutil

import pytest

from husk.api import routes
from husk.api.calls.router import Router
from husk.api.edge import missing
from husk.api.routes import MODULES, Operations, all_routes, routes_of


def test_every_module_is_found_by_the_first_word_of_each_of_its_paths() -> None:
    for module in pkgutil.iter_modules(routes.__path__):
        words = {route.pattern.split("/")[1] for route in routes_of(module.name)}
        assert words == {word for word, names in MODULES.items() if module.name in names}, module.name


@pytest.mark.parametrize("path", ["/_ping", "/containers/a/json", "/exec/a/json", "/images/a/b/json", "/networks/"])
def test_a_path_loads_what_it_may_mean_once(path: str) -> None:
    operations = Operations()
    word = path.split("/")[1]
    loaded = {route.pattern.split("/")[1] for route in operations.needed_for(path)}
    assert word in loaded
    assert list(operations.needed_for(path)) == []


def test_an_unknown_path_loads_nothing() -> None:
    assert list(Operations().needed_for("/nothing")) == []
    assert list(Operations().needed_for("")) == []


def test_words_that_share_a_module_may_come_in_any_order() -> None:
    operations, router = Operations(), Router(missing.ROUTES)
    for path in ("/exec/a/json", "/containers/a/exec", "/commit", "/images/json", "/build/prune", "/system/df"):
        router.add(operations.needed_for(path))
    assert router.match("POST", "/containers/a/exec")[1] == "a"
    assert len(all_routes()) > 90
