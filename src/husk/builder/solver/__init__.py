"""The solver: makes what a graph says, each operation at most once, or takes the result from the cache.

`solver` goes through a graph; `waiting_copies` are what may be packed while files still come. `execution` carries one
operation out. `interfaces` are what it asks of others. A `ref` (`refs`) is a result that is made when somebody needs
it, for an asker (`asking`), with the client's session (`sessions`), what its user grants (`entitlements`) and allows
(`source_policy`, `source_rules`).
"""
