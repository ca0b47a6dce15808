# The two commands of the README set everything up themselves: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The oldest Python, with the oldest versions of what we depend on.
OLDEST_PYTHON ?= python3.11
OLDEST := .venv-minimum
WHEEL := build/wheel

.PHONY: demo test test-all test-minimum wheel-test lint format bench pretrain reproduce docs clean
.DEFAULT_GOAL := test

# One environment for everything, made anew when the dependencies change.
$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(OLDEST)/.ready: pyproject.toml constraints-minimum.txt
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --constraint constraints-minimum.txt --editable ".[test]"
	touch $@

demo: $(VENV)/.ready
	$(BIN)/edgebelief demo demo-output --force

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The slow tests too, with the shapes in annotations checked at every call (tests/shapes.py); how much
# of the package they reach; the oldest dependencies; and the wheel.
test-all: $(VENV)/.ready wheel-test test-minimum
	CHECK_SHAPES=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "" --cov --cov-report term:skip-covered

# Without the fuzz tests, which make tables that pandas 2 cannot hold.
test-minimum: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal --ignore tests/test_fuzz.py

# What users install, in an environment that has nothing else.
wheel-test:
	$(PYTHON) -m venv --clear $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --upgrade pip
	$(WHEEL)/bin/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	$(WHEEL)/bin/python -m pip install --quiet --constraint constraints.txt $(WHEEL)/*.whl
	$(WHEEL)/bin/python -I .ci/wheel_test.py $(WHEEL)/*.whl

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

# The pair network, trained on simulated graphs: on a GPU (docs/pretrained.md), in pieces if need be.
# SMALL=1: a small one, in under a minute on two cores. Fails if it is no better than the base rate.
RUN := build/pretrain
pretrain: $(VENV)/.ready
	mkdir -p $(RUN)
ifdef SMALL
	$(BIN)/python -m edgebelief.amortise --small --exam-every 0 --out $(RUN)/small.safetensors
else
	$(BIN)/python -m edgebelief.amortise --log $(RUN)/log.jsonl --out $(RUN)/weights.safetensors \
		--checkpoint $(RUN)/run.safetensors $(if $(wildcard $(RUN)/run.safetensors),--resume $(RUN)/run.safetensors)
endif

# Every table and figure of the paper; DATA=FOLDER for those that need the authors' data.
reproduce: $(VENV)/.ready
	$(BIN)/python -m reproduction --jobs 2 --out reproduction-output $(if $(DATA),--data $(DATA))
	mkdir -p docs/images/reproduction
	cp reproduction-output/reproduction.md docs/
	cp reproduction-output/images/reproduction/*.png docs/images/reproduction/

docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) $(OLDEST) build site demo-output reproduction-output
	rm -rf .pytest_cache .ruff_cache .mypy_cache .coverage
