"""A classic build as the history of builds has it: `docker buildx history` and the dashboard show it beside others."""

import secrets

from husk.builder.classic.build import ClassicRequest
from husk.builder.graph.schemes import redacted
from husk.builder.protocol.messages import control

FRONTEND = "dockerfile.v0"
# As long as those that buildx makes up.
_REF_BYTES = 13


def record_of(request: ClassicRequest, remote: str = "") -> control.SolveRequest:
    """In BuildKit's words, with a name of its own. `remote` is where the context comes from, if not from the client: a
    password in it is not kept."""
    options = request.options
    attributes = {
        "filename": request.dockerfile,
        "target": options.target,
        "platform": str(options.platform),
        "context": redacted(remote),
        **{f"build-arg:{name}": value for name, value in options.build_args.items()},
    }
    names = ",".join(name.familiar for name in request.names)
    return control.SolveRequest(
        ref=secrets.token_hex(_REF_BYTES)[:25],
        frontend=FRONTEND,
        frontend_attrs={name: value for name, value in attributes.items() if value},
        exporters=[control.Exporter("image", {"name": names} if names else {})],
    )
