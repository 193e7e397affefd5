"""Prometheus metrics, when `--metrics-addr` asks for them: until then nothing of this package is loaded.

    families    every metric there is, with its type, labels and help: one registry of our own
    requests    requests (`husk.api.edge.counted`) become counts and a histogram
    observe     actions of the engine (`husk.watch`) become counts and histograms
    facts       what is looked up when somebody asks: containers by state, the store, workers, the cache of builds
    containers  the numbers of each container, as many as the settings allow
    loop_delay  how late the event loop is
    server      answers GET /metrics on an address of its own

dockerd's names are kept where they mean the same here (`engine_daemon_*`, `builder_*`); all else is `husk_*`. No label
ever holds a path that a client made up, and only the metrics of containers have labels with names that users choose.
"""
