"""The files of builds on disk, beside the layers of images (`husk.storage`), and the workers that touch them.

- `diffs`: what the steps of builds have changed, and how that becomes layers (`diff_packing`,
  `layer_packing` in their `compressions`); a step writes to a place of `workspaces`
- `file_actions`: what a build can do with files; `trees` does it, with digests (`content_digest`, `portable_digest`)
- `contexts`: contexts that come as archives; `repositories`: those of git;
  `space` limits what may come
- `sync`: directories that go between a client and builds; `sync_table` remembers them, `ahead` packs them meanwhile
- `stack_archives`, `stack_lists`: what goes out
- `cache_directories`: the directories of `RUN --mount=type=cache`; `build_records`: builds that have ended
- `workers`: the processes that do all this
"""
