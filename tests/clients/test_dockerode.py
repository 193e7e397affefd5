"""Builds by dockerode, Docker's client for Node.

Node is a hundred megabytes of packages, so the set-up of tests does not take it: these run where there is one, after
`npm install --prefix .venv/node dockerode`.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.building import Context
from tests.support.daemon import Daemon
from tests.support.images import forget_images

MODULES = Path(__file__).resolve().parents[2] / ".venv/node/node_modules"
pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (MODULES / "dockerode").exists(),
    reason="needs node and dockerode: npm install --prefix .venv/node dockerode",
)

SCRIPT = """
const Docker = require("dockerode");
const docker = new Docker({ socketPath: process.argv[1] });
const [context, options] = [process.argv[2], JSON.parse(process.argv[3])];
(async () => {
  const stream = await docker.buildImage({ context, src: ["Dockerfile", "a"] }, options);
  const told = await new Promise((done, failed) =>
    docker.modem.followProgress(stream, (error, all) => (error ? failed(error) : done(all))));
  console.log(JSON.stringify(told));
})().catch((error) => { console.error(error.message); process.exit(1); });
"""


def build(daemon: Daemon, context: Path, **options: object) -> "subprocess.CompletedProcess[str]":
    path = daemon.host.removeprefix("unix://")
    return subprocess.run(
        ["node", "-e", SCRIPT, path, str(context), json.dumps(options)],
        env={**os.environ, "NODE_PATH": str(MODULES)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_builds_by_both_builders(daemon: Daemon, tmp_path: Path) -> None:
    Context(tmp_path).write({"Dockerfile": "FROM busybox\nARG A\nCOPY a /a\nRUN echo $A >> /a\n", "a": "copied "})
    for version in ("1", "2"):
        done = build(daemon, tmp_path, t="by-node", version=version, buildargs={"A": f"by {version}"})
        assert done.returncode == 0, done.stderr
        assert daemon.docker("run", "--rm", "by-node", "cat", "/a").stdout == f"copied by {version}\n"
        ids = [one["aux"]["ID"] for one in json.loads(done.stdout) if isinstance(one.get("aux"), dict)]
        assert ids == [daemon.docker("image", "inspect", "-f", "{{.Id}}", "by-node").stdout.strip()]
    Context(tmp_path).write({"Dockerfile": "FROM busybox\nRUN exit 5\n"})
    assert "non-zero code: 5" in json.loads(build(daemon, tmp_path).stdout)[-1]["error"]
    forget_images(daemon)
    daemon.docker("builder", "prune", "-af")
