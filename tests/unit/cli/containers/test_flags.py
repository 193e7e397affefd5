import click

from husk.cli.containers.flags import container_flags


def test_every_flag_has_its_own_name():
    @click.command()
    @container_flags
    def run(**_):
        """Nothing."""

    names = [name for option in run.params for name in option.opts]
    assert len(names) == len(set(names))
    assert {"-h", "-it"[:2], "-t", "-d", "--net", "--gpus", "--pull"} - set(names) == {"-d"}
    assert all(isinstance(option, click.Option) and option.help for option in run.params)
