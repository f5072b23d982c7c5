# Two commands matter: `make demo` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
KERNEL := $(wildcard src/lynceus/surrogate/_kernel/*.c src/lynceus/surrogate/_kernel/*.h)

.PHONY: demo test test-all spark lint bench clean

demo: $(STAMP)
	$(BIN)/lynceus demo

test: $(STAMP) lint
	$(BIN)/pytest -n 2 --dist worksteal

test-all: $(STAMP) lint
	$(BIN)/pytest -n 2 --dist worksteal -m "slow or not slow"

# Spark and, where it is missing, a JDK; then the example that needs them.
spark: $(STAMP)
	command -v java > /dev/null || apt-get install --yes openjdk-17-jre-headless
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark]'
	$(BIN)/pytest -m slow tests/examples -k spark

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks

$(STAMP): pyproject.toml setup.py constraints.txt $(KERNEL)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name '*.so' -delete
