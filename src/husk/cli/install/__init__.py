"""`husk install` and `husk uninstall`: Husk as a service of this host, and taking exactly that back.

`files` says what belongs on a host (units or a script, completions, the manual page), `record` what was put there,
`group`, `systemd` and `openrc` drive the programs that make groups and services, `put` and `take` do the work,
`command` reads the line.
"""
