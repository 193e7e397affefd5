"""The OCI document of a container: pure but for what it reads of the host.

document      a container's configuration becomes the `config.json` of its bundle
capabilities  Docker's fourteen, plus and minus what the client asks for
defaults      what a container gets though nobody asked for it
devices       nodes of the host's devices
limits        limits that this host cannot give, lowered with a warning; `host_facts` is what it can give
users         `user[:group]`, by the image's own passwd and group
"""
