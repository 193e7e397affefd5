"""Processes that do the file-heavy work, each confined to the files that it is for.

- `jobs` and `answers`, of `parts`: what workers are told, and what they say of it; `messages`: the way there and back
- `handle` is the daemon's hold on a worker; `nursery` gets it from a process that forks them, `forker`; `pipes` are
  where its answers arrive, `caller` the daemon as a worker sees it
- `unpack` makes a layer of a stream and keeps the blob (`extract` makes the files), `diff` a stream of what a
  container has changed
- `pack` and `put` bring files out of and into a container's own view, which `confine` makes; `body` is
  the client's socket, past the daemon

How to add a job:

1. `jobs`, or those of a wing (`husk.builder.store.workers`): a Struct with what the worker must know, a `Job`; its
   docstring says what standard input and output are and which answers come, its `worker` names the module that does
   it. Take the answers that are there; a new one goes into `Answer`.
2. A module with `main(job, caller)`. It goes into its confinement (`confine.enter` for one directory, `confine.confine`
   for a container's view) before it looks at anything that somebody else has written; whatever it imports must be
   imported by then. It ends with `caller.answer(...)`. Errors that it knows are answers (`Invalid`: what was sent is to
   blame; `Failed`: the host is); an exception is a traceback in the daemon's log and no answer.
3. `forker` imports what the core's workers need, so that every worker has it. A wing has it load its own jobs, with
   `Nursery.load`.
4. Whoever wants it done: `worker = await Worker.start(nursery, job)`, `await worker.write(...)` if it has input,
   `await worker.outcome()`, and `worker.stop()` whatever happens. No answer (None) means that the worker died.
"""
