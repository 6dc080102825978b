# Every target does its own set-up. `make help` lists them.

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
ARGS ?=

# The first Python that is 3.11 or newer; override with PYTHON=...
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; \
	done || true)

.DEFAULT_GOAL := help
.PHONY: help setup demo kafka browser test test-plain test-fast perf bench check format docs lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv (again only when the dependencies change)

$(STAMP): pyproject.toml constraints.txt scripts/set_up.py
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer on PATH. Install one, or: make setup PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) scripts/set_up.py $(VENV)
	@touch $@

demo: $(STAMP) ## the car-ad example, then 100,000 searches and a stream of ads on Spark (ARGS=...)
	@$(BIN)/tamis demo $(ARGS)

kafka: $(STAMP) ## fetch Spark's connector for Kafka, and a broker for its test (needs mvn)
	@$(BIN)/python scripts/kafka_jars.py $(ARGS)

browser: $(STAMP) ## find a Chromium or Chrome for the tests of the page, or install one (as root, with apt-get)
	@$(BIN)/python scripts/browser.py

test: $(STAMP) ## all tests but the timed ones, fast ones first (ARGS=...)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)
	@$(MAKE) --no-print-directory test-plain

# The same kernels as plain Python: what Numba makes of them is checked against what they say.
test-plain: $(STAMP) ## some tests of the index, the algorithms and the store with the compiler off
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal \
		tests/contract/test_index.py tests/contract/test_index_values.py tests/unit/test_moving.py \
		tests/contract/test_matchers.py tests/unit/test_event_store.py \
		-k "test_index or test_moving or \
			test_matchers and (open_and_closed or used_again or texts or at_once or find_what_match_finds) or \
			test_event_store and (every_kind or 257)" \
		-W "ignore:overflow encountered:RuntimeWarning"

test-fast: $(STAMP) ## the tests that need no Spark
	$(BIN)/python -m pytest -m "not spark and not perf" $(ARGS)

perf: $(STAMP) ## the timed tests
	$(BIN)/python -m pytest -m perf $(ARGS)

# About half an hour on a quiet machine of two cores. ARGS=--resume goes on with a run that was stopped.
bench: $(STAMP) ## the headline benchmarks of all parts, into docs/performance.md (ARGS=...)
	$(BIN)/tamis bench all --scale 1 --output docs/results/headline --report docs/performance.md $(ARGS)

check: $(STAMP) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## let ruff format and fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(STAMP) ## write the pages and pictures that are made from the code: docs/errors.md, docs/figures/walk.png
	@$(BIN)/python scripts/error_page.py
	@$(BIN)/python scripts/walk_picture.py

lock: $(STAMP) ## write constraints.txt anew: the newest versions that work together
	$(BIN)/python scripts/lock.py

clean: ## remove .venv and everything the tools leave behind
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
