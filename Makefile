# The two commands of the README set everything up themselves: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all lint format bench reproduce docs clean
.DEFAULT_GOAL := test

# One environment for everything, made anew when the dependencies change.
$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/edgebelief demo demo-output --force

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ""

lint: $(VENV)/.ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/solvers.py
	$(BIN)/python benchmarks/restricted.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/inference.py

# Every table and figure of the paper; DATA=FOLDER for those that need the authors' data.
reproduce: $(VENV)/.ready
	$(BIN)/python -m reproduction --jobs 2 --out reproduction-output $(if $(DATA),--data $(DATA))
	mkdir -p docs/images/reproduction
	cp reproduction-output/reproduction.md docs/
	cp reproduction-output/images/reproduction/*.png docs/images/reproduction/

docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site demo-output reproduction-output .pytest_cache .ruff_cache .mypy_cache
