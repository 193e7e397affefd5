"""Jobs: builds of clients, from the question to the result.

`jobs` has those under way, with the containers that their clients run processes in (`containers`); `results` is what is
asked and answered. `failure` and `failed_steps` say why a build failed and where, `status_log` what it has told so far,
`kept_builds` what is kept of those that have ended.
"""
