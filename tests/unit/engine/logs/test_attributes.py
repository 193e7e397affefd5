"""What a container's options add to its messages."""

from husk.engine.logs import attributes
from tests.unit.engine.logs.samples import container


def test_attributes() -> None:
    labelled = container(labels="a,zz", env_regex="^[EF]", tag="{{.ID}}/{{ .DaemonName }}")
    assert attributes.extra(labelled) == {"a": "1", "E": "1", "F1": "2"}
    assert attributes.details(labelled) == "E=1,F1=2,a=1,tag=0123456789ab%2Fdocker"
    assert attributes.details(container("local")) == ""
