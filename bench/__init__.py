"""Speed, measured: `make bench` runs all of it, `python -m bench.NAME` one script; see docs/performance.md."""
