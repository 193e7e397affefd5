import time
from pathlib import Path

import pytest

from husk.errors import InvalidParameter
from husk.storage.secrets.sealing import Sealer
from husk.swarm.ca import authority, roots
from husk.swarm.ca.tokens import read_token
from husk.swarm.model.settings import CAConfig, SwarmSpec
from husk.swarm.model.swarm import Swarm, Trust
from tests.support.but import but

NOW = time.time()


@pytest.fixture
def sealer(tmp_path: Path) -> Sealer:
    return Sealer(tmp_path / "swarm.key")


@pytest.fixture
def swarm(sealer: Sealer) -> Swarm:
    made = Swarm(id="s", version=1, created_at="", updated_at="", spec=SwarmSpec(), worker_token="", manager_token="")
    made = but(made, trust=roots.first(CAConfig(), sealer, NOW))
    return roots.with_tokens(made)


def trust_of(swarm: Swarm) -> Trust:
    assert swarm.trust is not None
    return swarm.trust


def brought() -> tuple[CAConfig, authority.Root]:
    own = authority.new_root(NOW)
    return CAConfig(signing_ca_cert=own.certificate.decode(), signing_ca_key=own.key.decode()), own


def test_the_key_is_sealed_and_tokens_name_the_root(swarm: Swarm, sealer: Sealer) -> None:
    trust = trust_of(swarm)
    assert b"PRIVATE" not in trust.root.key
    assert roots.signer(swarm, sealer).root.certificate.decode() == trust.root.certificate == trust.roots
    tokens = {read_token(token) for token in (swarm.worker_token, swarm.manager_token)}
    assert len(tokens) == 2 and all(token.fits(trust.root.certificate.encode()) for token in tokens)


def test_a_swarm_may_begin_with_a_root_of_its_owners(sealer: Sealer) -> None:
    config, own = brought()
    assert roots.first(config, sealer, NOW).root.certificate == own.certificate.decode()
    config.signing_ca_key = authority.new_root(NOW).key.decode()
    with pytest.raises(InvalidParameter, match="rpc error: code = InvalidArgument desc = certificate key mismatch"):
        roots.first(config, sealer, NOW)


def test_settings_that_ask_for_nothing_change_nothing(swarm: Swarm, sealer: Sealer) -> None:
    assert roots.replaced(swarm, CAConfig(node_cert_expiry=5), sealer, NOW) is swarm.trust


def test_a_root_is_replaced(swarm: Swarm, sealer: Sealer) -> None:
    old, tokens = trust_of(swarm).root, (swarm.worker_token, swarm.manager_token)
    swarm = but(swarm, trust=roots.replaced(swarm, CAConfig(force_rotate=1), sealer, NOW))
    new = trust_of(swarm).next
    assert trust_of(swarm).root == old and new is not None and trust_of(swarm).signing is new
    assert trust_of(swarm).roots == old.certificate + new.certificate
    signer = roots.signer(swarm, sealer)
    assert signer.root.certificate.decode() == new.certificate and len(signer.bridges) == 1
    assert (swarm.worker_token, swarm.manager_token) == tokens
    swarm = roots.finish(swarm)
    assert trust_of(swarm) == Trust(root=new)
    assert read_token(swarm.worker_token).fits(new.certificate.encode()) and swarm.worker_token not in tokens
    after = swarm.worker_token
    swarm = roots.finish(swarm)
    assert swarm.worker_token == after, "nothing is under way"


def test_a_replacement_is_replaced_or_taken_back(swarm: Swarm, sealer: Sealer) -> None:
    config, own = brought()
    swarm = but(swarm, trust=roots.first(config, sealer, NOW))
    swarm = but(swarm, trust=roots.replaced(swarm, CAConfig(force_rotate=1), sealer, NOW))
    first = trust_of(swarm).next
    swarm = but(swarm, trust=roots.replaced(swarm, CAConfig(force_rotate=2), sealer, NOW))
    assert trust_of(swarm).next not in (None, first) and trust_of(swarm).root.certificate == own.certificate.decode()
    swarm = but(swarm, trust=roots.replaced(swarm, config, sealer, NOW))
    assert trust_of(swarm).next is None and not trust_of(swarm).bridge
