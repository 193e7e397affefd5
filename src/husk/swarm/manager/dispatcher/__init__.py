"""Assignments of workers: what each may know, who is told, and how it is said over the port (`dispatcher`)."""
