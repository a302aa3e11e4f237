# Each target makes .venv and installs what it needs by itself.
PYTHON ?= python3
SCALE ?= quick
OUT ?= results
BIN := .venv/bin

.PHONY: heatmap paper test lint clean

heatmap: .venv/installed  ## the first heatmap: experiment 1 with its theory, its claims, and the picture
	$(BIN)/python -m sweeps exp1_sinusoid --scale $(SCALE) --out $(OUT)

paper: .venv/installed  ## every figure and every statement of the paper, in $(OUT)/report.html; SCALE=paper for full size
	$(BIN)/python -m sweeps all --scale $(SCALE) --out $(OUT) --report

test: .venv/installed-dev
	$(BIN)/python -m pytest -n 2

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/installed-dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@ .venv/installed

clean:
	rm -rf .venv results
