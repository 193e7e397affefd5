"""The life of a build.

    asked      by BuildKit's protocol (`jobs`, `solve`) or by the classic API (`classic`); `service` is what the edge
               calls. A frontend makes refs of the client's words: the built-in one reads a Dockerfile, another is an
               image that runs in a container and asks for what it needs
    a graph    of operations (LLB): sources, processes, files, merges, differences. Nothing is done yet
    solved     when somebody needs a ref: `solver` carries each operation out at most once, side by side where they do
               not need each other, or takes its result from the cache. A result is a stack: layers and diffs
    exported   as an image, an archive, files, a cache elsewhere; only now are diffs packed as layers
    ended      what was made stays in the cache until `prune` takes it; what the build told, and what became of it, is
               kept for `docker buildx history`. A build whose client leaves is cancelled and leaves nothing mounted

Rooms in here: `dockerfile` (the language; pure), `steps` (processes in containers that nobody sees), `exporters`
(results), `remote` (caches elsewhere), `attest` (provenance, SBOM).

Modules: `operations`, `graph`, `schemes`, `stacks`, `op_json`, `layered` (what builds are made of; pure), `interfaces`,
`solver`, `flights` (runs that several builds share), `execution` (one operation), `cache`, `cache_keys` with
`vertex_keys`, `prune`; the sources `image_source`, `layout_source`, `local_source`, `git_source`, `http_source` with
`seen_files`, `remote_context`, `given`, `request_bodies`, `per_build` (what is found out once for a build); `frontend`
with `frontend_options`, `comma_fields` and `syntax`, `gateway_frontend`, `answers` (questions by which nothing is
built), `refs`, `results`; `sessions` (what the client is asked), `registry_login`; `jobs`, `solve`, `job_containers`,
`remains` and `failed_steps` (where a step failed), `failure`, `progress`, `status`, `kept_builds`; `classic` with
`classic_progress` and `history_cache`; `export`, `waiting_copies` (layers that are packed while files come);
`assemble`, `surroundings`, `late`, `late_sources`, `late_results` (how parts are put together, most when they are first
asked for), `service`.

Who may touch what: this room knows images and containers' drivers below it, and services above do not know it. Nothing
in here knows HTTP, gRPC or the kernel: what a client gives comes through `sessions`, what happens on the host through
the interfaces in `execution` and `steps/drivers`. docs/build.md tells the whole of it.
"""
