import click

from husk.cli.kit.group import near, words


def test_words_that_look_like_one():
    assert near("netwrk", ["network", "node"]) == " (did you mean network?)"
    assert near("xyz", ["network"]) == ""


def test_a_word_that_is_not_known(typed):
    told = typed("netwrk", "ls")
    assert told == (1, "", "husk: unknown command: 'netwrk' (did you mean network?). See 'husk --help'\n")
    told = typed("volume", "creat")
    assert told.err == "husk volume: unknown command: 'creat' (did you mean create?). See 'husk volume --help'\n"


def test_help_of_a_word(typed):
    assert "Create a volume." in typed("help", "volume", "create").out
    assert "husk [OPTIONS] COMMAND" in typed("help").out
    assert "did you mean volume" in typed("help", "volum").err


def test_a_group_of_words():
    group = words("g", "Help.", click.Command("a"), click.Command("b"))
    assert group.list_commands(click.Context(group)) == ["a", "b"]
