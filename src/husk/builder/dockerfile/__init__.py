"""The Dockerfile language: from the text of a file to stages of typed instructions.

    text ── lines.split ──▶ lines ── parse.parse ──▶ Dockerfile(stages, global arguments)
                              │                         │
                          words.py              instructions.py, run_mounts.py

- `lines` knows what a line is: comments, continuations, parser directives (`directives`), flags and heredocs; and the
  forms of arguments.
- `words` splits, quotes and expands variables, as a shell would, with patterns (`patterns`) for `${name#pattern}`.
- `parse` makes one typed instruction out of each line; `instructions` has their types.

Everything here is a pure function. A file is foreign input: nothing recurses as deep as the file says, and no pattern
can make matching slow.
"""
