"""A network namespace outlives the container it was made for, while another is in it."""

from tests.integration.networks.conftest import refused


def test_the_guest_of_a_guest_hears_that_the_owner_is_gone(net):
    net.run("owner")
    net.run("guest", "--network", "container:owner")
    owner = net.inspect("owner", "{{.Id}}")
    net.daemon.docker("rm", "-f", "owner")
    assert net.inspect("guest", "{{.State.Running}}") == "true"
    net.daemon.docker("create", "--name", "late", "--network", "container:guest", "busybox", "true")
    said = f"container guest: it is that of container {owner}, which has been removed"
    assert f"Error response from daemon: cannot join network namespace of {said}" in refused(net, "start", "late")
    assert net.daemon.http("POST", "/containers/late/start").status == 409
