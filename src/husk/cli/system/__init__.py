"""Commands for an engine as a whole."""
