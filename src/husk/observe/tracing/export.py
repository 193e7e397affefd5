"""The export of spans over HTTP, by a thread of the SDK's, to the receiver that `OTEL_EXPORTER_OTLP_ENDPOINT` names.

All other settings are OpenTelemetry's own variables, which the SDK reads: sampler, headers, certificates, resource.
"""

import asyncio
import logging
import threading
from contextlib import AsyncExitStack

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from husk.version import __version__

log = logging.getLogger(__name__)

# Seconds that the daemon's end waits for the last spans.
PATIENCE = 5.0
# They tell of every attempt to send; that it failed is enough.
_TALKATIVE = ("opentelemetry", "urllib3", "requests")


def tracer(parts: AsyncExitStack) -> Tracer | None:
    """Return a maker of spans until `parts` end, which sends the last of them. None, and a warning, where it fails."""
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ValueError as error:
        log.warning("no traces are sent: a variable of OpenTelemetry is not as it should be: %s", error)
        return None
    parts.push_async_callback(end, provider)
    return provider.get_tracer("husk", __version__)


async def end(provider: TracerProvider, patience: float = PATIENCE) -> None:
    """Send what waits. A receiver that does not answer is not waited for: the thread ends with the process."""
    sending = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
    sending.start()
    await asyncio.to_thread(sending.join, patience)
    if sending.is_alive():
        log.warning("the last traces could not be sent within %g seconds", patience)


def _resource() -> Resource:
    """Describe us as a resource: version and name, unless the environment has another name for us."""

    found = Resource.create({SERVICE_VERSION: __version__})
    if str(found.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "husk"}))
    return found
