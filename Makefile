# make setup   install what is missing (Debian packages, .venv with the locked dependencies)
# make run     set up, then run the daemon in the foreground: make run ARGS="--log-level debug"
# make test    set up, then linters, types, import rules and all tests: make test TESTS="tests/unit -k reference"
# make check   linters, types and import rules alone

SHELL := /bin/bash
BIN := .venv/bin
ARGS ?=
TESTS ?=

# The tools of .venv first; the system's directories for users without sbin in their PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH):/usr/local/sbin:/usr/sbin:/sbin

.PHONY: setup setup-test run test check lock clean

setup:
	@scripts/setup

setup-test:
	@scripts/setup --test

run: setup
	@exec $(BIN)/husk serve $(ARGS)

check: setup-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

test: check
	$(BIN)/python scripts/run-tests $(TESTS)

lock:
	scripts/lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist src/*.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
