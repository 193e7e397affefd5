"""Declared state that the engine keeps: services, and the tasks that make them real.

A service says what should run (a template, how many, how to change from one template to the next). A task is one
attempt to run it in one slot: a record with a life of its own that ends, and is then kept as history; its container is
made by it and carries its id in a label.

    pending → assigned → preparing → starting → running → complete | failed | shutdown | rejected | orphaned

Two halves share its record. The manager's, `reconciler`, decides: `planner` says which tasks there are to be,
`scheduler` on which node (both pure), and `changes` writes that down; until a task is assigned it is the manager's
alone. The node's half, `agent`, carries out what its node is assigned: it looks at containers, launches, ends, and
reports states. Between them are `assignments`, on a manager the records themselves, for a worker what the `dispatcher`
of a manager tells it. Each half is woken by the other, by events and by its own clock, and forgets nothing that
matters, so that a crash or a missed event heals by itself.

Modules: `model` (the types), `cluster` (the swarm and its one node), `founding` (their first records), `former_records`
(those of release 0.1), `autolock` (which keys open its secrets), `cluster_store` (what is asked of a store that hosts
may share), `embedded` (that of one host), `records` with `record_kinds` (all of them in memory, and their way into the
store), `machine` (the host as a node), `updates` (rolling update, pure part
of the planner), `clocks` (by what time is counted), `planner`, `placement` (nodes and constraints), `suitable`
(filters), `room` (what tasks take of a node), `spread` (choice among nodes), `scheduler`, `task_index` (tasks by
service and node), `changes` with `batches` (as much at once as a store takes), `reconciler`, `assignments`, `share`
(what a node may know and say), `dispatcher` with `dispatcher_desk` and `dispatch_client` (its calls, on both ends),
`assignment_messages` with `mixed_releases` (what is not known here costs one entry), `remote_assignments` (a
worker's end), `heartbeats` and
`liveness` (which nodes live), `workers` (a manager's side of them), `worker` (this host as one), `joining` (how it asks
to be one), `enrolment` (its place in a swarm, and how it gets another), `tenure` (as a manager), `council` (the etcd
that managers run), `attending` (what a manager does when records of managers change), `moving` (from one store to
another), `backups` with `backup_file` and `restored` (pure), `network_sharing`, `agent`, `runner` (work on single tasks
that takes time), `containers` (task → container configuration), `endpoints` (virtual addresses, names, published
ports), `objects` (secrets and configs, sealed), `delivery` (those as files in tasks), `networks` (ingress, who needs
which), `shared_networks` (networks and addresses that hosts share), `overlay_feed` (what a host is told of the others),
`network_services` (what a network tells of services), `credentials` (for images), `followers` (who waits for new
tasks), `elsewhere` (logs of other nodes), `expand` with `gotemplate` and `gofunctions` (templates), `ids`, `settings`,
`privileges`, `validate`, `defaults`, `service` (what the edge calls), `parts` (how they are put together).

Who may touch what: this is the highest room. It makes and removes containers through `containers.service` as a client
would, and nothing below knows that services exist.
"""
