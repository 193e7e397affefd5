"""The builder, a wing of the engine: everything that only builds need. The life of a build:

    asked      by BuildKit's protocol (`protocol`, `jobs`, `solve`) or by the classic API (`classic`); `service` is what
               the edge calls. A frontend (`frontend`) makes refs of the client's words: the built-in one reads a
               Dockerfile, another is an image that runs in a container and asks for what it needs
    a graph    of operations (`graph`): sources, processes, files, merges, differences. Nothing is done yet
    solved     when somebody needs a ref: `solver` carries each operation out at most once, side by side where they do
               not need each other, or takes its result from the `cache`. A result is a stack: layers and diffs
    exported   as an image, an archive, files (`exporters`), a cache elsewhere (`remote_cache`), with statements about
               it (`attest`); only now are diffs packed as layers
    ended      what was made stays in the cache until `cache.prune` takes it; what the build told, and what became of
               it, is kept for `docker buildx history`. A build whose client leaves is cancelled and leaves nothing
               mounted

The rooms, from the bottom up; each imports only those below it:

    store                              files of builds on disk, and the workers that touch them
    graph                              what is to be done; pure
    dockerfile | solver                the language, pure; what makes a graph's results
    cache                              results by keys
    sources | steps                    where files come from; processes in containers that nobody sees
    jobs                               builds of clients
    frontend                           from a client's words to a graph
    exporters                          results that go out
    attest | classic | remote_cache    statements about results; the classic API; caches elsewhere
    protocol                           BuildKit's protocol

`opening` puts them together when the first build begins, with the parts of the core in `surroundings`: a `parts` module
per room that has several parts, and `result_parts` for all that brings results out. What few builds need is made when
it is first asked for (`lazy_table`). `solve` is one build by BuildKit's protocol.

But for `store` nothing here makes system calls, but for `protocol` nothing knows gRPC: what a client gives comes
through `solver.sessions`, what happens on the host through the interfaces in `solver.execution` and `steps.drivers`.
docs/build.md tells the whole of it.
"""
