from husk.cli.images.images import HEADINGS, rows

ATTRS = {
    "Id": "sha256:" + "ab" * 32,
    "RepoTags": ["busybox:latest", "host:5000/a:1"],
    "RepoDigests": ["busybox@sha256:" + "cd" * 32, "lost@sha256:" + "ef" * 32],
    "Created": 1000,
    "Size": 2_000_000,
    "SharedSize": 500_000,
    "Containers": -1,
}


def test_a_line_for_each_name():
    first, second = rows(ATTRS, 1000 + 7200)
    assert (first["Repository"], first["Tag"], first["ID"]) == ("busybox", "latest", "ab" * 6)
    assert (second["Repository"], second["Tag"]) == ("host:5000/a", "1")
    assert (first["CreatedSince"], first["Size"], first["UniqueSize"]) == ("2 hours ago", "2MB", "1.5MB")
    assert (first["Containers"], first["SharedSize"]) == ("N/A", "500kB")
    assert set(first) == set(HEADINGS)


def test_digests():
    shown = [(row["Repository"], row["Tag"], row["Digest"][:9]) for row in rows(ATTRS, 0, digests=True)]
    assert shown == [
        ("busybox", "latest", "sha256:cd"),
        ("host:5000/a", "1", "<none>"),
        ("lost", "<none>", "sha256:ef"),
    ]


def test_no_name_at_all():
    bare = {"Id": "sha256:" + "ab" * 32, "RepoTags": [], "Created": 0, "Size": 0}
    [row] = rows(bare, 0, whole=True)
    assert (row["Repository"], row["Tag"], row["ID"]) == ("<none>", "<none>", bare["Id"])
    assert (row["CreatedSince"], row["UniqueSize"]) == ("N/A", "N/A")
