"""OpenTelemetry traces, where the environment says where to: until then nothing of this package is loaded.

    export   the SDK set up: spans wait in a bounded queue and are sent over OTLP/HTTP by a thread of its own
    observe  requests (`husk.api.edge.observed`) and actions of the engine (`husk.watch`) become spans

A receiver that is slow or away costs spans, and nothing else. The packages are the extra `otel` of ours.
"""
