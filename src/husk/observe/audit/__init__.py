"""The audit log, when `--audit-log` asks for one: until then nothing of this package is loaded.

    lines   what stands in a line: who asked for which change, and what became of it; never a secret
    writer  one thread that appends whole lines, whatever the disk does

A line is written when its request has been answered: that of a session (attach, exec, a build) at its end.
"""
