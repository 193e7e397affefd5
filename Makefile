# make setup   install what is missing (Debian packages, .venv with the locked dependencies)
# make run     set up, then run the daemon in the foreground: make run ARGS="--log-level debug"
# make test    set up, then linters, types, import rules and all tests: make test TESTS="tests/unit -k reference"
# make fuzz    hostile input against all that reads some, for a minute: FUZZ_SECONDS=3600 make fuzz, HUSK_TEST_SEED=1 for the same again
# make bench   set up, then speed beside dockerd and podman into build/bench: make bench QUICK=1, ARGS="--only exec,api"
# make deb     a Debian package, with a virtual environment inside: dist/husk_VERSION_ARCHITECTURE.deb
# make release all files of a release in dist/: wheel, source archive, Debian package, SBOM, SHA256SUMS
# make simulate  lives of a swarm in simulated time: make simulate SECONDS=3600 SEED=1
# make docs    the pages of docs/ as a site on http://127.0.0.1:8000; make site builds it into build/site, strictly
# make check   linters, types, import rules, modules without tests, docstrings that open with a question, and imports inside functions, alone

SHELL := /bin/bash
BIN := .venv/bin
ARGS ?=
QUICK ?=
SECONDS ?= 60
SEED ?= $(shell date +%s)
TESTS ?=
TAG ?=

# The tools of .venv first; the system's directories for users without sbin in their PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH):/usr/local/sbin:/usr/sbin:/sbin
# What `collect` compiles is kept, also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

# Independent commands two at a time, each with its output in one piece.
BOTH := $(MAKE) --no-print-directory --jobs 2 --output-sync=target

FUZZ_SECONDS ?= 60

.PHONY: setup setup-test run fuzz bench deb release test simulate check lint types imports mirrors docstrings doors collect lock clean docs site

setup:
	@scripts/setup

setup-test:
	@scripts/setup --test

run: setup
	@exec $(BIN)/husk serve $(ARGS)

fuzz: setup-test
	@$(BIN)/python -m compileall -q src
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -n 2 tests/fuzz

bench: setup-test
	@$(BIN)/python -m bench.all $(if $(QUICK),--quick) $(ARGS)

simulate: setup-test
	@$(BIN)/python -m tests.simulation --seed $(SEED) --seeds 1000000 --seconds $(SECONDS)

deb: setup
	@$(BIN)/python scripts/build-deb

release: setup
	@$(BIN)/python scripts/release $(if $(TAG),--tag $(TAG))

check: setup-test
	@$(BOTH) types imports lint mirrors docstrings doors

test: setup-test
	@$(BOTH) types collect imports lint mirrors docstrings doors
	$(BIN)/python scripts/run-tests $(TESTS)

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy --strict

imports:
	$(BIN)/lint-imports

mirrors:
	$(BIN)/python scripts/check-mirrored-tests

docstrings:
	@$(BIN)/python scripts/check-docstrings

doors:
	@$(BIN)/python scripts/check-imports-in-functions
	@$(BIN)/python scripts/check-public-doors

# Python compiles the tests once here, and not once in every worker; the sources, too, or the watch on a daemon's loop would name them.
collect:
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m pytest --collect-only -qq $(TESTS) >.venv/collected || { cat .venv/collected; exit 1; }

docs: .venv-docs/ready
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs serve

site: .venv-docs/ready
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet --strict

# Apart from .venv: neither the product nor its tests need any of it.
.venv-docs/ready: requirements-docs.lock
	@python3 -m venv --clear .venv-docs
	@.venv-docs/bin/pip install --quiet --require-hashes --no-deps -r requirements-docs.lock
	@touch $@

lock:
	scripts/lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist src/*.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
