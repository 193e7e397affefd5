"""The exports of the result of a build, as a client's `--output` asks for them.

    image       an image of our store, or an index of several platforms; and the push of it (`moby`, `image`)
    archive     the same as a tar on the client's side (`oci`, `docker`)
    local, tar  the files of the result in a directory, or in a tar, of the client's; `stated_files` are those of
                statements about them, `file_options` says where all of them go

An image goes out as a `bundle`: for each platform a configuration, a manifest and layers in their final compression;
statements about them (`Predicate`); and an index, if there is more than one manifest. `options` reads what the client
says, `parts` tells the platforms of a result apart, `documents` composes manifests, also those of statements:
these four are pure.

A plain build for one platform makes no bundle: its layers stay plain tars, which are compressed when they are pushed
(`engine/images/push.py`), and nobody is bound to the digest of its manifest.
"""
