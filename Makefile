# One verb for each chore; CI calls the same ones. On a machine with only Python and make, all of them work.

PYTHON ?= python3
JOBS ?= 2
UV_VERSION := 0.13.7

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
MODEL := src/fieldstone/backends/models/wordllama-256.model
EDITABLE = $(PIP) install --no-deps --no-build-isolation -e .
PIP := $(PY) -m pip -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup serve test lint format types layers unit crash mutate bench fuzz lock clean

help: ## List the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) $(MODEL) ## Make .venv from the pinned, hashed requirements (nothing to do the second time)
	@:

# The stamp is written last: an interrupted setup is simply done again.
$(READY): pyproject.toml hatch_build.py requirements/base.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Fieldstone needs Python 3.11 or newer: make setup PYTHON=python3.12"; exit 1; }
	@echo "Setting up $(VENV) ..."
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(EDITABLE)
	@touch $@

# The install makes it; it is missed only where it was removed since.
$(MODEL): | $(READY)
	@$(EDITABLE)

serve: setup ## Serve a Field on 127.0.0.1:8420 (DB=path-or-url HOST=… PORT=…)
	@$(VENV)/bin/fieldstone serve $(if $(DB),--db '$(DB)') $(if $(HOST),--host '$(HOST)') $(if $(PORT),--port '$(PORT)')

test: lint types layers unit ## Everything that CI checks: lint, types, layers, tests

lint: setup ## Style and likely bugs (ruff)
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

format: setup ## Mend what `make lint` can mend by itself
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

types: setup ## Strict types (mypy)
	@$(VENV)/bin/mypy

layers: setup ## The import direction of the rooms (import-linter)
	@PYTHONPATH=src $(VENV)/bin/lint-imports --no-logo --no-cache

unit: setup ## The tests (ARGS='tests/core -k clock' for a part, JOBS=0 for one process)
	@$(PY) -m pytest -n $(JOBS) $(ARGS)

crash: setup ## kill -9 under load, a thousand times (CYCLES=…)
	@$(PY) -m tests.crash.rig --cycles $(or $(CYCLES),1000)

mutate: setup ## Each scrub of a secret taken out in turn: a test must fail (ARGS='--only record-content --json')
	@$(PY) -m tests.mutate $(ARGS)

bench: setup ## Speed and size beside the peers, measured in the same run
	@$(PY) -m benchmarks

fuzz: setup ## The fuzz tests with many more examples, and not the same ones each time
	@FIELDSTONE_FUZZ=1 $(PY) -m pytest -n $(JOBS) tests/fuzz $(ARGS)

# What is pinned stays unless it must change; UPGRADE=1 takes the newest of everything.
# No index address may reach the files: they are installed from wherever the reader's pip looks.
COMPILE = .cache/lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

lock: ## Pin the dependencies again, with hashes (UPGRADE=1 for the newest)
	@$(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip -qq --disable-pip-version-check install uv==$(UV_VERSION)
	@$(COMPILE) pyproject.toml --output-file requirements/base.txt
	@$(COMPILE) pyproject.toml --extra dev --constraints requirements/base.txt --output-file requirements/dev.txt
	@$(COMPILE) benchmarks/peers/requirements.in --output-file requirements/bench.txt

clean: ## Remove all that the other verbs made, .venv included
	@rm -rf $(VENV) $(VENV)-bench .cache build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -f $(basename $(MODEL)).*
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
