# `make` alone prints this menu.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PYTHONPATH := $(CURDIR):$(CURDIR)/clients/python/src

.DEFAULT_GOAL := help
.PHONY: help setup servers airflow-env jar clients demo test lint docs bench soak lab clean

help:  ## this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready  ## the environment in .venv, Java, the jars, the start-up archive

$(VENV)/.ready: requirements.lock pyproject.toml scripts/setup.sh
	@bash scripts/setup.sh $(PYTHON) $(VENV)

servers: setup  ## the servers the tests run against, from Debian's packages (needs root)
	@bash scripts/servers.sh

airflow-env:  ## Airflow in an environment of its own (.venv-airflow)
	@bash scripts/airflow_env.sh

jar: setup  ## the jar that audits Java applications, in dist/
	@bash scripts/jar.sh $(BIN)

clients: setup  ## the wheel and the jar that audit Python and Java applications, in dist/
	@$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist clients/python
	@bash scripts/jar.sh $(BIN)

demo: setup  ## a recorded real incident through everything, offline, about a minute
	@$(BIN)/acktrail demo

test: setup servers jar  ## every test: unit, laws, Spark, real servers, real Airflow
	@bash scripts/test.sh $(BIN)

lint: setup  ## ruff, formatting, mypy strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: setup  ## the pages made from code (docs/tables.md, docs/settings.md)
	@$(BIN)/python -m acktrail.contracts.tables_page > docs/tables.md
	@$(BIN)/python -m acktrail.settings.page > docs/settings.md

bench: setup servers  ## the same work by acktrail and by its peers, as ratios, in bench/results.json
	@$(BIN)/python -m bench

soak: setup servers jar  ## the long crash and fault tests; PART=agents|alerts|day|warnings|ordinary|journey|outages|drivers|stores|laws|truth|report|java|clients
	@bash scripts/soak.sh $(BIN) $(PART)

lab: setup servers  ## every scenario of the lab on a real cluster
	@$(BIN)/acktrail lab run --all --table

clean:  ## remove what the targets above made here
	@rm -rf $(VENV) .venv-airflow .venv-deploy build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
