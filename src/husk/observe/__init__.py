"""The views of an operator into the daemon: its log, and what is loaded when it is asked for.

    log      the daemon's log, in dockerd's two forms
    metrics  Prometheus metrics
    tracing  OpenTelemetry traces
    audit    the audit log

Metrics, traces and the audit log hear of requests from `husk.api.edge.counted` and `observed`, and of the engine's work
from `husk.watch`.
"""
