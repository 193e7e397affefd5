"""The cache of builds: records by keys (`cache`), and which of them go when they are too many (`prune`)."""
