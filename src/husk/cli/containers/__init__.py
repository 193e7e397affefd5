"""Commands for containers: one module for each, or for those that are alike."""
