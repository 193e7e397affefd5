"""The graph of a build: what is to be done, before anything of it is done. Pure.

`operations` are sources, processes, files, merges and differences (LLB), a `graph` has them with their inputs. By
`cache_keys` results are found again here, by `op_digests` (of `op_json`) in caches that BuildKit knows too. `schemes`
are the kinds of sources, `stacks` the results; `layered` tells which operations make layers of an image, `progress` is
what a build tells of its vertices.
"""
