# Everything here sets up what it needs: a virtual environment in .venv with the pinned dependencies.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all check format lock bench-adversarial bench-data bench-pull bench-method bench-prior-worth bench-simulate bench-tuning benchmark-page dist reference site

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Written when the environment is complete; older than the lock or the project's metadata means: do it again.
READY := $(VENV)/.ready
# Two test processes leave two cores idle for a tenth of the time: they wait for servers, disks and processes. A
# file is one process's: what its fixtures build is built once.
TEST_PROCESSES ?= 3

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

demo: $(READY) ## the main job on PD1 mini: build, pre-train, evaluate, report; only what is missing
	$(BIN)/hyperbo demo

PYTEST := $(BIN)/pytest -q -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder

test: $(READY) ## the tests for each commit: every behaviour, in minutes
	$(PYTEST) -m "not slow"

test-all: $(READY) ## all tests: killed processes, full disks, real servers, long property runs too
	$(PYTEST)

check: $(READY) ## formatting, linters, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

bench-data: $(READY) ## time and memory of building and loading versions, beside pandas
	PYTHONPATH=tests/support $(BIN)/python -m benchmarks.data

bench-pull: $(READY) ## time and bytes of pulling a published version, beside plain downloads
	$(BIN)/python -m benchmarks.pull

bench-method: $(READY) ## time of pre-training at PD1's size, beside PyTorch where it is installed
	$(BIN)/python -m benchmarks.method

bench-simulate: $(READY) ## time and memory of offline Bayesian optimization at PD1's size, beside plain loops
	$(BIN)/python -m benchmarks.simulate

# On other data: make bench-adversarial ADVERSARIAL="--data FOLDER --dataset trials/taskset:1.0.0"
ADVERSARIAL ?=
bench-adversarial: $(READY) ## regret of methods whose prior was trained on wrong tasks
	PYTHONPATH=tests/support $(BIN)/python -m benchmarks.adversarial $(ADVERSARIAL)

# Its other commands need data: make bench-tuning TUNING="live --online FOLDER --out FOLDER"
TUNING ?= speed
bench-tuning: $(READY) ## time and memory of choosing a trial, beside Optuna and BoTorch where PyTorch is installed
	$(BIN)/python -m benchmarks.tuning $(TUNING)

# In an hour on one core; then: python -m benchmarks.prior_worth tables --out FOLDER
PRIOR_WORTH ?= --data data --dataset pd1/mini:1.0.0 --out runs/prior-worth
bench-prior-worth: $(READY) ## how many tasks and trials a prior needs to help
	$(BIN)/python -m benchmarks.prior_worth measure $(PRIOR_WORTH)

benchmark-page: $(READY) ## write docs/benchmarks.md from the records of benchmarks
	$(BIN)/python -m benchmarks.page docs/benchmarks.md

reference: $(READY) ## write the pages of the Python API and of the commands, in Markdown, to docs/generated
	$(BIN)/python docs/reference.py docs/generated

site: $(READY) ## build the documents as a site, offline, in build/site; the tutorial is run
	$(BIN)/sphinx-build -W --keep-going -q -c docs . build/site
	@echo "build/site/index.html"

dist: $(READY) ## build the wheel and the source distribution in dist/, and check them
	rm -rf dist
	$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist .
	HYPERBO_DIST=dist $(BIN)/pytest -q tests/end_to_end/test_wheel.py
	@ls -l dist

format: $(READY) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY) ## resolve the dependencies anew, with hashes and without addresses
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-strip-extras --no-header --no-annotate --upgrade --quiet --output-file requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' || { \
	  echo "Python 3.11 or 3.12 is needed, and $(PYTHON) is not: make PYTHON=python3.12 ..." >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
