import click
import pytest

from husk.cli.kit.read import filters_of, seconds


def test_filters():
    assert filters_of(["status=running", "label=a=b", "Label=c"]) == {"status": ["running"], "label": ["a=b", "c"]}
    with pytest.raises(click.BadParameter, match="NAME=VALUE"):
        filters_of(["status"])


def test_lengths_of_time():
    assert (seconds("1m30s", "-t"), seconds("500ms", "-t"), seconds("0", "-t"), seconds("1.5h", "-t")) == (
        90,
        0.5,
        0,
        5400,
    )
    for wrong in ("", "5", "1x", "s", "1s x"):
        with pytest.raises(click.BadParameter, match="invalid argument"):
            seconds(wrong, "--health-interval")
