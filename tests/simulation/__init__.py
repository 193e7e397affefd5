"""A swarm in simulated time: managers, workers and an etcd in one process, whose hosts crash, are cut off, have slow
disks and clocks that step.

    python -m tests.simulation --seeds 1000        # as many lives, each from a seed of its own
    python -m tests.simulation --seed 4711 -v      # one of them again, told as it goes

Real are the records, the planner and its loop, who leads and who lives, the dispatcher, agents and runners, and all
that asks etcd. Doubles are etcd itself (`etcd`), containers and packets (`hosts`), and time (`loop`): a minute takes as
long as the work in it. `life` tells what happens in one, and what must hold whatever happens.
"""
