from husk.dashboard.drawing import Bar, bars, name_of, picture


def container(name: str, **networks: str) -> dict[str, object]:
    joined = {network: {"IPAddress": address} for network, address in networks.items()}
    return {"Names": [f"/{name}"], "NetworkSettings": {"Networks": joined}}


def test_each_container_is_joined_to_its_networks() -> None:
    networks = [{"Name": "back", "Driver": "bridge"}, {"Name": "front", "Driver": "bridge"}, {"Name": "none"}]
    found = picture(networks, [container("web", front="10.0.0.2", back="10.1.0.2"), container("db", back="10.1.0.3")])
    assert [box.name for box in found.networks] == ["back", "front"]
    assert [(box.name, box.note) for box in found.containers] == [("db", "10.1.0.3"), ("web", "10.1.0.2, 10.0.0.2")]
    assert [line.label for line in found.lines] == ["db is on back", "web is on back", "web is on front"]
    ends = {box.name: box.y for box in (*found.networks, *found.containers)}
    assert [(line.from_y, line.to_y) for line in found.lines] == [
        (ends["back"], ends["db"]),
        (ends["back"], ends["web"]),
        (ends["front"], ends["web"]),
    ]
    assert all(0 < y < found.height for y in ends.values())


def test_nobody_on_a_network_is_no_picture() -> None:
    assert picture([{"Name": "bridge"}], [{"Names": ["/box"]}, container("gone", other="")]).lines == []


def test_the_parts_of_a_bar_follow_each_other() -> None:
    assert bars([30, 0, 10]) == [Bar(0.0, 750.0), Bar(750.0, 0.0), Bar(750.0, 250.0)]
    assert bars([0, 0]) == [Bar(0.0, 0.0), Bar(0.0, 0.0)]


def test_a_container_without_a_name_is_known_by_its_id() -> None:
    assert name_of({"Id": "a" * 64}) == "a" * 12
