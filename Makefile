# Targets: demo, test, check, bench, soak. Each sets up .venv at first use; nothing else is needed
# than Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export DBT_SEND_ANONYMOUS_USAGE_STATS := 0

.PHONY: setup demo test check bench soak clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("olapdb needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

# The example, end to end: Spark ingests a year of flights, dbt builds the views, rows arrive live,
# drift is caught and repaired.
demo: setup
	$(BIN)/python example_project/demo.py --check

# All that decides whether a change may land. Operations have a process of their own, as for users:
# dbt keeps state of a process's earlier commands.
test: check
	$(BIN)/python -m pytest tests -q -m "not soak" --ignore=tests/contract/dbt --ignore=tests/unit
	$(BIN)/python -m pytest tests/contract/dbt -q -p dbt.tests.fixtures.project -p no:warnings -m "not soak" --ignore=tests/contract/dbt/test_operations.py
	$(BIN)/python -m pytest tests/contract/dbt/test_operations.py -q -p dbt.tests.fixtures.project -p no:warnings

# Lint and the quick tests: about two minutes.
check: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest tests/unit -q -m "not slow and not soak"

# Side by side with chDB and DuckDB, in one run; prints ratios. BENCH="--only reads" is a part of it.
bench: setup
	$(BIN)/python tests/benchmarks/run.py $(BENCH)

# The long form of the random and fault tests, and examples that no run has drawn before.
soak: setup
	$(BIN)/python -m pytest tests -q -m "soak or hypothesis" --hypothesis-profile=fresh --ignore=tests/contract/dbt --timeout=7200

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
