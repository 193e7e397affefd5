"""Processes that do the file-heavy work, each confined to the files that it is for.

- `jobs` and `answers`, of `parts`: what workers are told, and what they say of it; `messages`: the way there and back
- `handle` is the daemon's hold on a worker, `dialogue` on one that speaks with a client; `nursery` gets it from a
  process that forks them, `forker`; `report` is where its answers arrive, `caller` the daemon as a worker sees it
- `unpack` makes a layer of a stream (`intake` keeps the blob, `extract` makes the files), `diff` a stream of what a
  container has changed, `diff_blob` a blob of what a step of a build has
- `file_job` carries out the file actions of a build (`copying`, `archive_files`, `rooted_tree`, `symbolic_modes`) on
  file systems that `stack_views` shows it; `tree_read` reads and looks at files of one, `listing` lists them,
  `difference` compares two, `context` unpacks the context of a build
- `git` gets files out of repositories: `git_view` is what the program sees of the host, `git_program` runs it
- `parse` has foreign text read by a module of a room above, with little memory and time; `parser` asks it, in `frames`
- `pack` and `put` bring files out of and into a container's own view, which `confine` makes; `outlet` and `body` are
  the client's socket, past the daemon

How to add a job:

1. `jobs`: a Struct with what the worker must know, in `Job`; its docstring says what standard input and output are
   and which answers come. Take the answers that are there; a new one goes into `Answer`.
2. A module with `main(job, caller)`. It goes into its confinement (`confine.enter` for one directory, `confine.confine`
   for a container's view) before it looks at anything that somebody else has written; whatever it imports must be
   imported by then. It ends with `caller.answer(...)`. Errors that it knows are answers (`Invalid`: what was sent is to
   blame; `Failed`: the host is); an exception is a traceback in the daemon's log and no answer.
3. `forker`: a line in the table of jobs, so that the module is imported once and every worker has it. The module may be
   in another package of storage, as those of `sync` are.
4. Whoever wants it done: `worker = await Worker.start(nursery, job)`, `await worker.write(...)` if it has input,
   `await worker.outcome()`, and `worker.stop()` whatever happens. No answer (None) means that the worker died.
"""
