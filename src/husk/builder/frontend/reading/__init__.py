"""Dockerfiles and definitions are read in a process of their own, with little memory and time.

    daemon                                          worker
    dockerfiles.open(text, ignored) ──── Open ────▶ answerer.Answerer
        syntax, patterns            ◀── Opened ────
        convert(options, sources)   ─── Convert ──▶ dockerfile.convert, until it needs to know an image
        looks images up             ◀── Asking ────
                                    ──── Found ───▶ and goes on
        a graph, and an image       ◀── Converted, and its operations one by one

A Dockerfile is foreign input, and so are `.dockerignore`, the triggers of its base images and the arguments: what they
cost is spent in the worker, which ends when it is too much (`husk.builder.store.workers.parse`). What comes back is
decoded by its types, in pieces. Both doors go through here: the frontend of BuildKit's protocol and the classic API.

`messages` is what the two say, `graphs` how operations go over. Definitions of clients and frontends (LLB) take the
same way in one turn: `definitions` asks, `llb_answerer` reads.
"""
