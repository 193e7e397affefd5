"""Workers of builds, as `husk.storage.workers` tells of workers; `jobs` are what they are told.

- `file_job` carries out the file actions of a build (`copying`, `archive_files`, `rooted_tree`) on
  file systems that `stack_views` shows it; `tree_read` reads and looks at files of one, `listing` lists them,
  `difference` compares two, `context` unpacks the context of a build, `stack_tar` packs a result
- `diff_blob` makes a blob of what a step has changed, `layer_tar` packs a layer while it is copied
- `git` gets files out of repositories: `git_view` is what the program sees of the host, `git_program` runs it
- `dialogue` is the daemon's hold on a worker that speaks with a client
- `parse` has foreign text read by a module of a room above, with little memory and time; `parser` asks it, in `frames`
- `bring_tree` is a program of its own that copies a directory, for `husk migrate`
"""
