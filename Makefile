# Each target creates its virtual environment and installs what it needs. `make test PYTHON=python3.13` uses another
# Python, in a separate environment, .venv-3.13.
PYTHON ?= python3
SCALE ?= quick
OUT ?= results
TESTS ?=
VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV := $(if $(filter python3,$(PYTHON)),.venv,.venv-$(VERSION))
BIN := $(VENV)/bin

.PHONY: heatmap paper test lint docs environment clean

heatmap: $(VENV)/installed  ## the first heatmap: experiment 1 with its theory, its claims, and the picture
	$(BIN)/python -m sweeps exp1_sinusoid --scale $(SCALE) --out $(OUT)

paper: $(VENV)/installed  ## every figure and every statement of the paper, in $(OUT)/report.html; SCALE=paper for full size
	$(BIN)/python -m sweeps all --scale $(SCALE) --out $(OUT) --report

test: $(VENV)/installed-dev  ## all tests, or those of TESTS="tests/test_fused.py ..."
	$(BIN)/python -m pytest -n 2 $(TESTS)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python

docs: $(VENV)/installed-docs  ## the documentation in site/index.html; warnings and dead links are errors
	rm -rf site
	JAX_PLATFORMS=cpu $(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet docs site
	$(BIN)/python docs/_check_site.py site

environment: $(VENV)/installed-dev $(VENV)/installed-docs  ## all that tests, linters and documentation need

$(VENV)/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@ $(VENV)/installed

$(VENV)/installed-docs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@ $(VENV)/installed

clean:
	rm -rf .venv .venv-* results site
