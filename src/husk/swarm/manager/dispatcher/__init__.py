"""Assignments of workers: what each may know (`share`, pure), who is told (`dispatcher`), over the port (`server`)."""
