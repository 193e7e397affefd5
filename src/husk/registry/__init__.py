"""The distribution API's client side: how images are named, described, authorized for, fetched and pushed.

    reference   what does a name like `busybox` or `localhost:5000/app@sha256:...` mean?   (pure)
    manifest    what is in a manifest, and which entry of an index suits this host?        (pure)
    challenges  what does a WWW-Authenticate header ask for?                                  (pure)
    failures    what does a registry's refusal mean to a docker user?                      (pure)
    auth        which Authorization header satisfies this registry?
    certificates  which CA and client certificates belong to this registry (`certs.d`)?
    routes      the way to a host: verified or open, to which addresses, through which proxy
    transport   the exchanges, each hop of a redirect by the way to its own host
    session     one exchange, authorized when the registry asks for that
    upload      `Target`: blobs and manifests into a repository, with mounts, resume and retries
    search      the old search API, where a registry offers it
    client      `RegistryClient`: manifests, blobs, logins and targets, on top of all of the above

The life of a pull: `client.manifest(ref)` asks without credentials; a 401 names the scheme, `auth` gets a header for
it, which is remembered for the blobs that follow. If the manifest is an index, `choose_platform` picks the entry and
the same call fetches it by digest. `client.blob_bytes` brings the config, `client.blob` streams each layer, resuming
where a connection broke. Nothing in this package touches the disk.
"""
