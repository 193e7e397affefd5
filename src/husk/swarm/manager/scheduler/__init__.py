"""Choice of a node for each task that waits: filters (`suitable`), spread and all of it (`scheduler`). Pure."""
