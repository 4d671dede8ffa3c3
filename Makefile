# The tasks of those who change the kit. Students need only ./lab.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python -P
# Further arguments for pytest or the benchmarks: make test ARGS='-m "not slow" -k parse'
ARGS ?=
# What Python compiles is kept, also where the environment says otherwise (images of Docker's do): else each of the
# tests' thousand commands compiles its modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Both machines are built before the tests, each with its progress, where they aren't in the cache.
# Tests at a time: one for each CPU. A second one there makes the virtual kernel wait for the CPU at each of
# its hundred thousand handovers a second: it then takes several times as long.
WORKERS ?= $(shell nproc)
TESTS = @if [[ -f scripts/kernel/build.sh ]]; then bash scripts/kernel/build.sh >/dev/null; fi; \
	PYTHONPATH=src:tests/support $(PYTHON) -c 'import browsers_machine; browsers_machine.ready()'; \
	$(PYTHON) -m pytest $(SHARED)
# Who has nothing left to do takes half of what another still has: so all end together.
SHARED = -n $(WORKERS) --dist worksteal
QUICK = tests/unit tests/parse tests/check/test_[cr]*.py tests/grade/test_roster.py \
	tests/testbeds/test_testbed_command.py tests/frontdoor/test_workflows.py
# Everything that git tracks, or would; without git, everything.
FILES = { git ls-files -z --cached --others --exclude-standard 2>/dev/null || \
	find . \( -name '.?*' -o -name site -o -name site-instructor -o -name build -o -name runs \) -prune -o -type f -print0; } | \
	while IFS= read -rd '' file; do if [[ -f $$file && ! -L $$file ]]; then printf '%s\0' "$$file"; fi; done

# Of these, what differs from main, or on main from the last commit; without git, all.
CHANGED = { { git diff -z --name-only --diff-filter=d "$$(git merge-base HEAD main 2>/dev/null || echo HEAD)" && \
	git ls-files -z --others --exclude-standard; } 2>/dev/null || $(FILES); } | \
	while IFS= read -rd '' file; do if [[ -f $$file && ! -L $$file ]]; then printf '%s\0' "$$file"; fi; done

# $(call texts,COMMAND): style of the shell scripts, form of the Markdown, spelling of all among the
# files that COMMAND prints. Files that people bring to the checker are as they are.
define texts
	@echo "shellcheck, shfmt, pymarkdown, codespell"
	@$(1) | xargs -0r .venv/bin/shfmt -f | tr '\n' '\0' | xargs -0r .venv/bin/shellcheck
	@$(1) | xargs -0r .venv/bin/shfmt -f | tr '\n' '\0' | xargs -0r .venv/bin/shfmt -d -i 2 -ci
	@$(1) | { grep -z '\.md$$' || true; } | { grep -zv '^tests/check/foreign/' || true; } | xargs -0r $(PYTHON) -m pymarkdown --strict-config scan
	@$(1) | xargs -0r $(PYTHON) -m codespell_lib
endef
# The package as a whole: a change in one module may break another.
define package
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	for facts in $(wildcard labs/*/facts.py labs/*/facts); do $(PYTHON) -m mypy "$$facts" || exit; done
	PYTHONPATH=src .venv/bin/lint-imports --no-cache
	$(PYTHON) scripts/lint/sizes.py
	$(PYTHON) scripts/lint/names.py
	$(PYTHON) scripts/lint/pages.py
	$(PYTHON) scripts/lint/titles.py
	$(PYTHON) scripts/machines/shipped.py lint
endef

.PHONY: help setup lint vale test test-nightly test-all nightly-reasons test-as-user checker-matrix checker-faults torture both-machines browser-profile browser-order machines machines-verify class bench solutions quick words site-assets schema docs clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 17

setup: ## install what the other tasks need (they do it themselves)
	@MEASURETWICE_SETUP=dev ./lab

lint: setup ## style, types, layers and sizes of Python and shell, form of Markdown, spelling and English of everything
	$(package)
	$(call texts,$(FILES))
	PYTHONPATH=src:scripts/lint $(PYTHON) scripts/lint/prose.py

vale: ## get ready what lint reads the prose with, which it does itself: a minute, once
	@bash scripts/lint/vale.sh >/dev/null

quick: setup ## while you work: lint of what changed, and the tests that take no time and no kernel
	$(package)
	$(call texts,$(CHANGED))
	$(PYTHON) -m pytest -q -m "not (slow or kernel or network)" $(QUICK) $(ARGS)

test: setup ## the tests, but for the dear ones that are left to the night
	@echo "the tests: a quarter of an hour on two cores"
	$(TESTS) -m "not nightly" $(ARGS)

test-nightly: setup ## the dear ones that make test leaves to the night, but for those that only a release needs
	@echo "the tests that are left to the night: some forty minutes on two cores"
	$(TESTS) -m "nightly and not release" $(ARGS)

test-all: setup ## all tests, before a release
	@echo "all tests: an hour and a half on two cores"
	$(TESTS) $(ARGS)

nightly-reasons: setup ## which tests make test leaves to the night, and what proves the same by day
	@$(PYTHON) -m pytest -q --nightly-reasons

test-as-user: setup ## the tests that depend on who runs them, as an ordinary user, whom root becomes for it
	.ci/as-user $(SHARED) $(ARGS)

checker-matrix: setup ## the proof of the checker: each pitfall broken and fixed, many seeds; then what checker-faults recorded
	PYTHONPATH=src $(PYTHON) tests/check/matrix.py $(ARGS)
	PYTHONPATH=src:tests/faults $(PYTHON) tests/faults/confusion.py

checker-faults: setup ## the other proof: faults of many kinds injected into runs, and honest runs beside them; hours
	PYTHONPATH=src:tests/faults $(PYTHON) tests/faults/faults.py $(ARGS)

torture: setup ## kills, full disks, hangs, load: does a sweep come to the same end? half an hour
	PYTHONPATH=src:tests/support $(PYTHON) tests/torture/torture.py $(ARGS)

both-machines: setup ## the browser's machine beside the virtual kernel: thirty trials of each lab on both; half an hour
	PYTHONPATH=src $(PYTHON) tests/kernel/both_machines.py $(ARGS)

browser-profile: setup ## what the browser's kernel is compiled by, counted in trials anew: a quarter of an hour
	$(PYTHON) scripts/browser/record_profile.py $(ARGS)

browser-order: setup ## which functions of the browser's kernel stand in one page, after a new profile: a quarter of an hour
	$(PYTHON) scripts/browser/order_functions.py $(ARGS)

class: setup ## a class of sixty, some of whom cheat, is run and graded: a quarter of an hour
	PYTHONPATH=src:tests/support $(PYTHON) tests/support/sixty.py

# What pages may quote takes longer: each says how long, in its first lines.
witnesses: setup ## what others measure of the same networks, in short; half an hour, and a line for each package that is missing
	@for by in $(if $(ARGS),"$(ARGS)","witness.py" "against_ns3.py --quick" "selftests.py --quick" "against_stock.py --quick"); do \
		echo "benchmarks/$$by"; $(PYTHON) benchmarks/$$by || exit; done

bench: setup ## how fast it is: virtual seconds per second
	@for file in benchmarks/*.py; do echo "$$file"; PYTHONPATH=src:tests/support $(PYTHON) "$$file" $(ARGS); done

solutions: ## the solution notebooks, run whole on the recorded runs: solutions/*.ipynb
	@MEASURETWICE_SETUP=docs ./lab
	PYTHONPATH=src $(PYTHON) solutions/build.py

words: setup ## the list of the words of pages: workshop/words.md
	PYTHONPATH=src $(PYTHON) -m measuretwice.site.reference >workshop/words.md

site-assets: setup ## what pages show that was recorded, but for runs: the graded class, and a lab book
	PYTHONPATH=src $(PYTHON) tests/support/example_class.py
	PYTHONPATH=src $(PYTHON) tests/support/finished_report.py

schema: setup ## lab.toml's JSON Schema, after a change of its tables: labs/lab.schema.json
	PYTHONPATH=src $(PYTHON) scripts/lab_schema.py >labs/lab.schema.json

machines: setup ## after a change of what machines are built from: build them, and pack what comes with the checkout
	@echo "building both machines, ten minutes on two cores, then packing them"
	@for pair in kernel:kernel/build browser:browser/build libraries:browser/libraries; do \
		folder=$$(MEASURETWICE_KERNEL=build bash scripts/$${pair#*:}.sh); \
		$(PYTHON) scripts/machines/shipped.py pack $${pair%:*} "$$folder"; done

machines-verify: ## build the machines that come with the checkout from source, and compare byte for byte; ten minutes
	@./lab list >/dev/null
	PYTHONPATH=src:scripts/machines $(PYTHON) scripts/machines/verify.py $(ARGS)

docs: setup ## the site, into site/
	./lab docs --build

clean: ## remove what was made here: .venv, site and caches. Recorded runs and the kernel stay
	rm -rf .venv site site-instructor .pytest_cache .mypy_cache .ruff_cache .hypothesis build
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
