"""Commands for images: one module for each, or for those that are alike."""
