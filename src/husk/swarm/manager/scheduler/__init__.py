"""Choice of a node for each task that waits: filters (`suitable`), spread (`spread`), all of it (`scheduler`). Pure."""
