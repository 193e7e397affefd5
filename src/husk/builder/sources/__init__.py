"""The sources of builds, one module for each kind: a class with `key` and `fetch`.

`images`, `layouts` (OCI layouts of clients), `local` (directories of clients), `git`, `http`, and what is here already
(`given`, `request_bodies`). `seen_files` and `per_build` remember answers, `registry_login` is the login of a client,
`session_judge` asks a client which sources its build may have.
"""
