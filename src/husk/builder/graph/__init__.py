"""The graph of a build: what is to be done, before anything of it is done. Pure.

`operations` are sources, processes, files, merges and differences (LLB), a `graph` has them with their inputs
and tells which make layers of an image. `ops`
are the messages that BuildKit's clients have for them: `llb_read` makes operations of these, `llb_write` makes them of
operations, `llb_json` writes them in Go's JSON. By `cache_keys` results are found again here, by `op_digests` (of that
JSON) in caches that BuildKit knows too. `schemes` are the kinds of sources, `stacks` the results;
`progress` is what a build tells of its vertices.
"""
