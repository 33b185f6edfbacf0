# Everything one does with a checkout. `make` alone lists the targets.

BIN := .venv/bin
# The Python of an existing .venv, whatever `python3` is; naming another one rebuilds .venv with it.
PYTHON ?= $(shell test -x $(BIN)/python && echo $(BIN)/python || echo python3)
FIND_PYTHON = command -v "$(PYTHON)" >/dev/null || \
	{ echo "setup: there is no '$(PYTHON)'; name a Python: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }

override SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal
# Compiled modules are kept: without them every process that a test starts compiles all of Penstock.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test test-all check format bench clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: ## Install Penstock into .venv, or repair it (PYTHON=python3.12 chooses the Python)
	@$(FIND_PYTHON)
	@"$(PYTHON)" tools/setup_venv.py

setup-dev: ## The same with what tests and checks need
	@$(FIND_PYTHON)
	@"$(PYTHON)" tools/setup_venv.py --dev

demo: setup ## Generate sample data, train on it, evaluate
	@$(BIN)/penstock demo

test: setup-dev ## Run the tests, without the slow ones: the same examples every time
	$(PYTEST) -m "not slow"

test-all: setup-dev ## Run every test, with random examples (SEED=... draws the same ones again)
	@echo "seed $(SEED); to draw the same examples again: make test-all SEED=$(SEED)"
	$(PYTEST) --hypothesis-seed=$(SEED)

check: setup-dev ## Style, types and layers
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo

format: setup-dev ## Rewrite the sources in the one style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: setup-dev ## Measure the claims, one script each
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean: ## Remove .venv and everything generated from sources
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
