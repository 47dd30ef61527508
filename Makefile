# Targets: demo, test, check, bench, bench-quick, soak. Each sets up .venv at first use; nothing else is needed
# than Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What runs in the kernels' other form too: groups, joins, aggregates, and the SQL files.
WITHOUT_KERNELS := $(addprefix tests/unit/execute/test_,codes.py lookup.py join.py operators.py \
	grouping_sets.py shared_codes.py shared_states.py) tests/property/test_aggregate_fast_paths.py \
	tests/sql
# Processes that run the tests: one for each core, at most four. `make test WORKERS=0` runs them in one process.
# Files run in the order of tests/harness/order.py, the long ones first.
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder
export DBT_SEND_ANONYMOUS_USAGE_STATS := 0

.PHONY: setup demo test check bench bench-quick soak clean

# ICU lies beside the other packages, where tests of COLLATE alone find it: dbt would read dates by it.
setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("olapdb needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	@echo "Setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(VENV)/icu 'pyicu-wheels>=2.15' || echo 'COLLATE is not tested: ICU cannot be installed'
	@touch $(STAMP)

# The example, end to end: Spark ingests a year of flights, dbt builds the views, rows arrive live,
# drift is caught and repaired.
demo: setup
	$(BIN)/python example_project/demo.py --check

# All that decides whether a change may land. The contract of dbt is tested on the built wheel.
test: check
	$(PYTEST) tests -m "not soak" --ignore=tests/contract/dbt --ignore=tests/unit
	$(PYTEST) tests/contract/dbt -p tests.harness.wheel -p dbt.tests.fixtures.project -p no:warnings -m "not soak"

# Lint and the quick tests: a few minutes. Then what the compiled kernels do, without them.
check: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(PYTEST) tests/unit -m "not slow and not soak"
	OLAPDB_KERNELS=off $(PYTEST) --dist worksteal $(WITHOUT_KERNELS) -m "not slow and not soak"

# Side by side with chDB and DuckDB, in one run; prints ratios. BENCH="--only reads" is a part of it.
# dbt-duckdb comes without what it requires, which is here: with it pip would try a dbt-core that cannot be built.
bench: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'dbt-duckdb>=1.11,<2'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' || echo 'tpch is left out: its generator cannot be installed'
	$(BIN)/python tests/benchmarks/run.py $(BENCH)

# Small tables and two rounds, under three minutes.
bench-quick: BENCH := --quick $(BENCH)
bench-quick: bench

# The long form of the random and fault tests, and examples that no run has drawn before. The contract
# of dbt has none: what kills dbt is in tests/faults.
soak: setup
	$(BIN)/python -m pytest tests -q -m "soak or hypothesis" --hypothesis-profile=fresh --ignore=tests/contract/dbt --timeout=7200

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
