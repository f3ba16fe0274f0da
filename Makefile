# A machine with Python 3.10-3.12 and make is enough. `make help` lists the targets.

PYTHON ?= python3 python3.12 python3.11 python3.10
VENV := .venv
BIN := $(VENV)/bin
TEST_EXTRAS := dev,languages,benepar,stanza,corenlp,ctranslate2,augment,negatives,train,evaluate,faiss,gcp
PYTEST := $(BIN)/python -m pytest -n 2

# uv does not compile what it installs: without bytecode on disk each process would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help docs-tables docs-check run test test-all heavy fuzz mutants bench-smoke lint types format constraints paraphraser clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1	/p' Makefile | expand -t 14

run: $(VENV)/base.stamp  ## the main job on the shipped sample, into out/contexts (replaces the output of an earlier run)
	$(BIN)/phrasemill mine-contexts --runner=DirectRunner --output out/contexts --overwrite

test: $(VENV)/test.stamp  ## the tests, without the heavy ones
	$(PYTEST) --dist worksteal -rs

test-all: test heavy  ## all tests

heavy: $(VENV)/test.stamp  ## only the heavy tests: those that need Java, Go, a browser or images
	$(PYTEST) --dist loadfile -m heavy -rs

fuzz: $(VENV)/test.stamp  ## the properties, with fifty times the examples of make test, new ones each time; hours
	PHRASEMILL_FUZZ=50 $(PYTEST) --dist worksteal -m 'hypothesis and not heavy'

bench-smoke: $(VENV)/test.stamp  ## each benchmark at its smallest
	$(BIN)/python -m benchmarks.smoke

mutants: $(VENV)/test.stamp  ## seeded mistakes, and which test finds each; an hour or two
	$(BIN)/python scripts/mutants.py

docs-tables: $(VENV)/test.stamp  ## write the tables of options, columns and reasons in docs/ from their declarations
	$(BIN)/python scripts/docs_tables.py

docs-check: $(VENV)/test.stamp  ## run the commands of README.md and docs/, and compare what they print; minutes
	$(BIN)/python scripts/docs_check.py

lint: $(VENV)/test.stamp  ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp  ## mypy
	$(BIN)/mypy

format: $(VENV)/test.stamp  ## let ruff format the code and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

paraphraser: $(VENV)/test.stamp  ## mine pairs of the shipped sample (INPUT=...: of your text) and train a paraphraser on them
	$(BIN)/phrasemill mine-pairs $(if $(INPUT),--input $(INPUT)) --output out/pairs
	$(BIN)/phrasemill train paraphraser --pairs out/pairs --output out/paraphraser

constraints: $(VENV)/test.stamp  ## resolve constraints.txt again from pyproject.toml, for all extras and Pythons
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.10 --upgrade --quiet \
		--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command 'make constraints' \
		--output-file constraints.txt

clean:  ## remove the virtual environment and the caches, not out/
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/base.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,.)

$(VENV)/test.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(call install,.[$(TEST_EXTRAS)])

$(BIN)/python:
	@for python in $(PYTHON); do \
		if "$$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; then \
			echo "$$python -m venv $(VENV)"; \
			"$$python" -m venv $(VENV) && exit 0; \
			rm -rf $(VENV); \
			echo "make: $$python cannot make a virtual environment (Debian and Ubuntu: apt-get install python3-venv)" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "make: phrasemill needs Python 3.10, 3.11 or 3.12, and none of these is one: $(PYTHON)." >&2; \
	echo "make: install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
	exit 1

# uv installs in seconds what takes pip minutes. If it is not available or fails (it does not read pip's configuration,
# nor its mirrors), pip is used.
define install
@[ -x $(BIN)/uv ] || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv \
	|| echo "make: no uv, installing with pip" >&2
@echo "install --constraint constraints.txt --editable '$(1)'"
@{ [ -x $(BIN)/uv ] && $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '$(1)'; } \
	|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '$(1)'
@touch $@
endef
