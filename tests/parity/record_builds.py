"""Write down what Docker's own daemon makes of the corpus of Dockerfiles (`builds/answers.json`), and what its classic
builder says of others (`builds/classic-answers.json`).

    sudo .venv/bin/python -m tests.parity.record_builds /tmp/peers/bin

The directory has a dockerd 28 or newer with what it starts, as `bench/borrow-peers` puts it there.
"""

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support import classic_parity
from tests.support.build_parity import CORPUS, Corpus, cases, wrong
from tests.support.dockerd import Dockerd


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="hk-parity-") as directory, Dockerd(Path(sys.argv[1])) as dockerd:
        corpus = Corpus(dockerd, Path(directory))
        with ThreadPoolExecutor(4) as threads:
            files = {**wrong("read"), **wrong("built")}
            refused = dict(zip(files, threads.map(corpus.complain, files.values()), strict=True))
        told = {
            "version": dockerd.http("GET", "/version").json()["Version"],
            "built": corpus.build(cases()),
            "refused": refused,
        }
        said = classic_parity.said_of_all(dockerd)
    for path, document in ((CORPUS / "answers.json", told), (classic_parity.ANSWERS, said)):
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
