"""Logs of tasks, wherever their containers are.

`task_logs` reads those of here and of other nodes, `broker` asks nodes that listen to this manager, and other
managers, `source` brings a worker's.
"""
