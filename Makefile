# Every target sets up what it needs: Python 3.11 (with pip and venv), make and a C++ compiler are enough.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt constraints.txt $(wildcard scripts/setup.sh native/* native/*/*)

.DEFAULT_GOAL := help
.PHONY: help run test torch check format bench docs wheel sanitize clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

run: $(VENV)/ready ## Train on the documentation of this machine's Python, and look at what was learned
	@$(BIN)/skipgrad demo

test: $(VENV)/ready ## Run all tests but the slow ones
	@$(BIN)/python -m pytest -m "not slow"

torch: $(VENV)/torch ## Install PyTorch, an extra, and run the tests and examples of the heads as its modules
	@$(BIN)/python -m pytest tests/test_torch_heads.py tests/test_torch_recurrence.py src/skipgrad/torch

check: $(VENV)/ready ## Lint, format, types, stubs, symbols, paths
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check.sh

format: $(VENV)/ready ## Format all code, and write the stubs of the native module anew
	@$(BIN)/ruff format --quiet .
	@find native -name '*.cpp' -o -name '*.h' | xargs $(BIN)/clang-format -i
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/stubs.sh src/skipgrad/_native.pyi

bench: $(VENV)/bench ## Train skipgrad, gensim and fastText on the same text; BENCH="d100 d300 small" chooses
	@$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/ready ## Check the documents: examples in docstrings and README run, links lead somewhere
	@$(BIN)/python -m pytest src tests/test_repository.py

wheel: $(VENV)/ready ## Build a wheel into dist/
	@$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .

sanitize: $(VENV)/ready ## Run the kernel tests with address and undefined-behaviour sanitizers
	@PATH="$(CURDIR)/$(BIN):$$PATH" scripts/sanitize.sh

clean: ## Remove what was built
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/ready: $(SOURCES)
	@scripts/setup.sh $(PYTHON) $(VENV) test,check
	@touch $@

$(VENV)/torch: $(VENV)/ready
	@scripts/setup.sh $(PYTHON) $(VENV) test,check,torch
	@touch $@

$(VENV)/bench: $(VENV)/ready
	@scripts/setup.sh $(PYTHON) $(VENV) test,check,bench
	@touch $@
