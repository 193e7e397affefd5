"""Declared state that the engine keeps: services, and the tasks that make them real.

A service says what should run (a template, how many, how to change from one template to the next). A task is one
attempt to run it in one slot: a record with a life of its own that ends, and is then kept as history; its container is
made by it and carries its id in a label.

    pending → preparing → starting → running → complete | failed | shutdown | rejected

`planner` is pure: a service, its tasks as observed, the time → what to do next, and when to look again. `reconciler`
is the only one who acts: observe, plan, act, until nothing is left to do; it is woken by container events, by changes
of services and by its own clock, and it forgets nothing that matters, so that a crash or a missed event heals by
itself.

Modules: `model` (the types), `cluster` (the swarm and its one node), `cluster_store` (what is asked of a store that
hosts may share), `embedded` (that of one host), `records` (records of services and tasks in memory, and their way into
the store), `machine` (the host as a node), `wanted` (whether a start needs all this), `updates` (rolling
update, pure part of the planner), `planner`, `placement` (constraints),
`containers` (task → container configuration), `reconciler`, `runner` (work on single tasks that takes time),
`endpoints` (virtual addresses, names, published ports), `objects` (secrets and configs, sealed), `delivery` (those as
files in tasks), `networks` (ingress, who needs which), `network_services` (what a network tells of services),
`credentials` (for images), `followers` (who waits for new tasks), `expand` with `gotemplate` and `gofunctions`
(templates), `ids`, `settings`, `privileges`, `validate`, `defaults`, `service` (what the edge calls), `parts`
(how they are put together).

Who may touch what: this is the highest room. It makes and removes containers through `containers.service` as a client
would, and nothing below knows that services exist.
"""
