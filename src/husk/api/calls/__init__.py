"""One call as its handler gets it, the table of paths that leads there, and the errors that it may answer."""
