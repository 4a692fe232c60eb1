# The commands of this repository. Each makes what it needs first, and makes nothing twice.
#
#   make test      the test suite on Python 3.11
#   make demo      a sentence encoder, GPT-2 and Llama captured, beside torch.compile
#   make help      the rest

PYTHON_VERSION ?= 3.11
VERSIONS ?= 3.11 3.12 3.13
VENV := $(if $(filter 3.11,$(PYTHON_VERSION)),.venv,.venv-$(PYTHON_VERSION))
PY := $(VENV)/bin/python
COUNT ?= 10000
SEED ?= 0
JOBS ?= 2
BUILT := build/built-$(PYTHON_VERSION)
CSOURCES := $(shell find csrc -name '*.[ch]' 2>/dev/null) $(wildcard setup.py)

export OMP_NUM_THREADS ?= 1
export PYTHONPATH := src
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false

.PHONY: help test test-all test-slow demo first bench stress fuzz memcheck conformance lint types layers format docs build environment demo-environment clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

environment:
	@python=$$(.ci/find-python $(PYTHON_VERSION)) || { echo "graphlift needs CPython $(PYTHON_VERSION) with headers: no such interpreter found"; exit 1; }; \
	"$$python" .ci/environment.py $(VENV) requirements/base.txt requirements/test.txt

demo-environment:
	@python=$$(.ci/find-python $(PYTHON_VERSION)) || { echo "graphlift needs CPython $(PYTHON_VERSION) with headers: no such interpreter found"; exit 1; }; \
	"$$python" .ci/environment.py $(VENV) requirements/base.txt requirements/test.txt requirements/demo.txt

build: environment $(BUILT) ## the C extension, in place

$(BUILT): $(CSOURCES) | environment
	@mkdir -p build
	GRAPHLIFT_STRICT=1 $(PY) setup.py --quiet build_ext --inplace
	@touch $@

test: build ## the test suite on one Python (PYTHON_VERSION=3.11)
	$(PY) -m pytest -q $(TESTS)

test-slow: build ## the same with the slow tests
	$(PY) -m pytest -q --slow $(TESTS)

test-all: ## the test suite on every supported Python that is here (CI=true: on all)
	@.ci/test-all $(VERSIONS)

demo: demo-environment build ## real models, eager and compiled side by side
	$(PY) examples/demo.py

first: build ## the README's first example
	$(PY) examples/first.py

bench-environment:
	@python=$$(.ci/find-python $(PYTHON_VERSION)) || { echo "graphlift needs CPython $(PYTHON_VERSION) with headers: no such interpreter found"; exit 1; }; \
	"$$python" .ci/environment.py $(VENV) $(addprefix requirements/,base.txt test.txt demo.txt bench.txt)

bench: bench-environment build ## every benchmark beside torch.compile, targets, a picture in build/bench
	$(PY) benchmarks/all.py
	$(PY) benchmarks/broken_models.py

bench-quick: build ## has anything become much slower? counts and ratios, no seconds
	$(PY) benchmarks/quick.py

stress: build ## long runs: a million calls, ten thousand captures, eight threads, deep recursion, all forced breaks
	@for program in tests/stress/[a-z]*.py; do echo "== $$program"; $(PY) $$program || exit 1; done
	$(PY) -m pytest -q --forced-breaks=all --timeout 3600 $(TESTS)

fuzz: build ## random programs, plain and compiled, all compared (COUNT=10000 SEED=0 JOBS=2)
	PYTHONPATH=src:tests $(PY) -m fuzz.campaign --count $(COUNT) --seed $(SEED) --jobs $(JOBS)

memcheck: build ## the C core under valgrind (PYTHON_VERSION=3.12; minutes)
	PYTHONMALLOC=malloc valgrind --quiet --error-exitcode=1 --suppressions=tests/memcheck/valgrind.supp \
	    $(PY) tests/memcheck/program.py

conformance: build ## CPython's own tests, plain and compiled (minutes); writes docs/conformance.md
	$(PY) tests/conformance $(TESTS)

lint: environment ## ruff
	$(PY) -m ruff check .
	$(PY) -m ruff format --check --quiet .

types: build ## mypy, strict
	$(PY) -m mypy

layers: environment ## who may import whom
	$(PY) -m pytest -q tests/test_layers.py

format: environment ## write the sources the way ruff does
	$(PY) -m ruff check --fix --quiet .
	$(PY) -m ruff format --quiet .

docs: build ## docs/graph_breaks.md, from the table of reasons
	PYTHONPATH=src $(PY) -m graphlift reasons > docs/graph_breaks.md

clean: ## what building left behind (environments stay)
	rm -rf build src/graphlift/*.so src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
