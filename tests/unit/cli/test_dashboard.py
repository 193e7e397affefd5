from click.testing import CliRunner

from husk.cli.dashboard import dashboard
from husk.cli.kit.place import HostChoice
from husk.errors import InvalidParameter


def run(*arguments: str) -> object:
    return CliRunner().invoke(dashboard, arguments, obj=HostChoice("unix:///nowhere"), catch_exceptions=True).exception


def test_an_address_that_others_reach_needs_tls() -> None:
    failed = run("--listen", "0.0.0.0:2380")
    assert isinstance(failed, InvalidParameter) and "without TLS" in failed.message


def test_a_certificate_that_is_not_there_is_named() -> None:
    failed = run("--tlscert", "/nowhere/cert.pem", "--tlskey", "/nowhere/key.pem")
    assert isinstance(failed, InvalidParameter) and "/nowhere/cert.pem" in failed.message
