"""`husk swarm`: what docker's own `docker swarm` has no word for."""
