KNOWN = {"Id": "p1", "Name": "sshfs:latest", "Enabled": True, "Settings": {"Env": []}}


async def test_their_life(client, engine):
    engine.answers("GET", "/plugins", [KNOWN])
    engine.answers("GET", "/plugins/sshfs:latest/json", KNOWN)
    for verb in ("enable", "disable", "set", "push"):
        engine.answers("POST", f"/plugins/sshfs:latest/{verb}", None)
    engine.answers("DELETE", "/plugins/sshfs:latest", None)
    (plugin,) = await client.plugins.list(filters={"enabled": True})
    assert plugin == await client.plugins.get("sshfs:latest")
    assert (plugin.name, plugin.enabled, plugin.settings) == ("sshfs:latest", True, {"Env": []})
    await plugin.disable(force=True)
    await plugin.configure(["DEBUG=1"])
    assert engine.last("POST", "/plugins/sshfs:latest/set").document == ["DEBUG=1"]
    await plugin.enable(timeout=5)
    assert engine.last("POST", "/plugins/sshfs:latest/enable").query == {"timeout": "5"}
    await plugin.push()
    await plugin.remove(force=True)
