"""Networks, on which a container is reached: `bridge`, `host` and `none`, and those that users make.

The life of a network: asked for (`options` checks) → its bridge is made, with a subnet of its own → its record is
written, and with that it exists → containers come and go → the record is deleted → the bridge is removed. What a crash
leaves in between (a bridge without a record) is swept at the next start; a record without its bridge gets it again.

The life of an endpoint, a container's place on a network: noted in the container's record when it is created or
connected → while the container runs it has an address, an interface, names and perhaps published ports → noted again.
`connector` moves endpoints between these two; all that it takes from the host is in the record at once.

Modules: `service` is what others call, `live` a network with its driver and members, `restore` what a start finds on
the host, `publisher` holds the ports of running containers (`port_requests` reads which ones a container wants,
and waits for those that come back), `options` and `pools` check what clients ask of a network and
`requests` what they ask of an endpoint, `prune` removes those that nobody uses, `default_bridge` follows the daemon's
settings, `names` knows what names mean, `links` is Docker's old way of names, `balancing` puts services on networks
and keeps their addresses, `overlays` leads networks to other hosts, `presence` has those of a swarm on
this host while they are needed, `sharing` says who has an address there.

Who may touch what: `husk.network` does the work on the host, and only this room calls it. Of other rooms it knows
`model` alone; how a container is found is handed to it as a function.
"""
