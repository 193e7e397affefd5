from husk.cli.containers.ps import HEADINGS, row, task_name

ATTRS = {
    "Id": "ab" * 32,
    "Names": ["/web", "/other/link"],
    "Image": "sha256:" + "cd" * 32,
    "ImageID": "sha256:" + "cd" * 32,
    "Command": "sh -c 'sleep 1000; echo done'",
    "Created": 1000,
    "State": "running",
    "Status": "Up 2 minutes",
    "Ports": [{"PrivatePort": 80, "Type": "tcp"}],
    "Labels": {"a": "b"},
    "SizeRw": 2000,
    "SizeRootFs": 3_000_000,
    "Mounts": [{"Type": "volume", "Name": "v" * 20, "Driver": "local"}, {"Type": "bind", "Source": "/a"}],
    "NetworkSettings": {"Networks": {"bridge": {}}},
}


def test_what_is_shown():
    shown = row(ATTRS, 1150.0)
    assert shown["ID"] == "abababababab"
    assert shown["Image"] == "cdcdcdcdcdcd"
    assert shown["Command"] == '"sh -c \'sleep 1000; …"'
    assert shown["RunningFor"] == "2 minutes ago"
    assert shown["Names"] == "web"
    assert shown["Ports"] == "80/tcp"
    assert shown["Size"] == "2kB (virtual 3MB)"
    assert shown["Mounts"] == "v" * 14 + "…,/a"
    assert (shown["LocalVolumes"], shown["Networks"], shown["Labels"]) == ("1", "bridge", "a=b")
    assert set(shown) == set(HEADINGS)


def test_all_of_it():
    shown = row(ATTRS, 1150.0, whole=True)
    assert shown["ID"] == "ab" * 32
    assert shown["Image"].startswith("sha256:")
    assert shown["Command"].endswith("done'\"")
    assert shown["Names"] == "web,other/link"


def test_little_is_known():
    shown = row({"Id": "ab" * 32, "Created": 0}, 0)
    assert (shown["Image"], shown["Size"], shown["Ports"]) == ("<no image>", "0B", "")


def test_tasks_of_services_are_named_without_their_id():
    labels = {"com.docker.swarm.task.name": "billing_jobs.1.abc", "com.docker.swarm.task.id": "abc"}
    assert task_name({"Labels": labels}) == "billing_jobs.1"
    assert task_name({"Labels": {"a": "b"}}) == task_name({}) == ""
