"""Choice of a node for each task that waits: filters, spread and the choice (`scheduler`). Pure."""
