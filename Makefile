# The tasks of those who change the kit. Students need only ./lab.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python -P
# Further arguments for pytest or the benchmarks: make test ARGS='-m "not slow" -k parse'
ARGS ?=
# Tests at a time. More than CPUs only makes those wait that run in real time.
WORKERS ?= 2
# Everything that git tracks, or would; without git, everything.
FILES = { git ls-files -z --cached --others --exclude-standard 2>/dev/null || \
	find . \( -name '.?*' -o -name site -o -name site-instructor -o -name build -o -name runs \) -prune -o -type f -print0; } | \
	while IFS= read -rd '' file; do if [[ -f $$file && ! -L $$file ]]; then printf '%s\0' "$$file"; fi; done

.PHONY: help setup lint test checker-matrix torture bench solutions words site-assets schema docs clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 17

setup: ## install what the other tasks need (they do it themselves)
	@MEASURETWICE_SETUP=dev ./lab

lint: setup ## style, types, layers and sizes of Python and shell, form of Markdown, spelling of everything
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	PYTHONPATH=src .venv/bin/lint-imports --no-cache
	$(PYTHON) scripts/lint/sizes.py
	@echo "shellcheck, shfmt"
	@$(FILES) | xargs -0 .venv/bin/shfmt -f | tr '\n' '\0' | xargs -0 .venv/bin/shellcheck
	@$(FILES) | xargs -0 .venv/bin/shfmt -f | tr '\n' '\0' | xargs -0 .venv/bin/shfmt -d -i 2 -ci
	@echo "pymarkdown"
	@$(FILES) | grep -z '\.md$$' | xargs -0 $(PYTHON) -m pymarkdown --strict-config scan
	@echo "codespell"
	@$(FILES) | xargs -0 $(PYTHON) -m codespell_lib

test: setup ## all tests; the first time builds the virtual kernel, two to three minutes
	@if [[ -f scripts/kernel/build.sh ]]; then bash scripts/kernel/build.sh >/dev/null; fi
	$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

checker-matrix: setup ## the proof of the checker: each pitfall broken and fixed, many seeds
	PYTHONPATH=src $(PYTHON) tests/check/matrix.py $(ARGS)

torture: setup ## kills, full disks, hangs, load: does a sweep come to the same end? half an hour
	PYTHONPATH=src $(PYTHON) tests/torture/torture.py $(ARGS)

bench: setup ## how fast it is: virtual seconds per second
	@for file in benchmarks/*.py; do echo "$$file"; PYTHONPATH=src $(PYTHON) "$$file" $(ARGS); done

solutions: setup ## the solution notebooks, run whole on the recorded runs: solutions/*.ipynb
	PYTHONPATH=src $(PYTHON) solutions/build.py

words: setup ## the list of the words of pages: workshop/words.md
	PYTHONPATH=src $(PYTHON) -m measuretwice.site.words.listing >workshop/words.md

site-assets: setup ## what pages show that was recorded, but for runs: the graded class
	PYTHONPATH=src $(PYTHON) tests/support/example_class.py

schema: setup ## lab.toml's JSON Schema, after a change of its tables: labs/lab.schema.json
	PYTHONPATH=src $(PYTHON) scripts/lab_schema.py

docs: setup ## the site, into site/
	./lab docs --build

clean: ## remove what was made here: .venv, site and caches. Recorded runs and the kernel stay
	rm -rf .venv site site-instructor .pytest_cache .mypy_cache .ruff_cache .hypothesis build
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
