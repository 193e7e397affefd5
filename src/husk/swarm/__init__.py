"""The swarm, a wing of the engine: services and the tasks that make them real, on one host or on several.

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

The rooms, from the bottom up; each imports only those below it, and neighbours do not know each other:

    model                 records and pure rules that all rooms share: services, tasks, nodes, settings, clocks
    spec                  what a declared service means: checks, defaults, templates, the containers of its tasks. Pure
    transport | loops     connections between hosts; loops that outlive what goes wrong in one turn
    signals               how a part tells those above it, which it does not know
    surroundings          the parts of the core that the swarm is built on
    ca | state            certificates and tokens; the cluster store: SQLite for one manager, etcd for several
    port                  the cluster port, on which nodes talk to managers: handlers, callers, messages
    membership            the swarm and its nodes: init, join, certificates, autolock, the managers' own etcd
    network | logs        overlay networks, virtual addresses, published ports; logs of tasks wherever they are
    node                  a node's half: it runs the tasks that it is assigned, and reports on them
    manager               a manager's half: reconciler, planner, scheduler, dispatcher, liveness, secrets and configs
    role                  this host's place in a swarm, and how it gets another one
    backup                all of a swarm in one sealed file, and back
    control               the operations that the edge calls
    opening               how all of it is put together, in phases: each room's parts on those below it

Who may touch what: the wing makes and removes containers through `containers.service` as a client would, and nothing
below knows that services exist. It is loaded with the first question about a swarm, or at a start where something is
left of one (`husk.composition`).
"""
