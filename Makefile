# make train   trains gomoku/9 for ten minutes
# make test    the default test suite
# make setup   only the environment
# make help    all targets

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
TESTED := .venv/test-packages
# Inputs of the installed package: a change of these files reinstalls it.
SOURCES := $(shell find core src -type f ! -name '*.so' ! -name '*.pyc' ! -name '_core.pyi') \
  CMakeLists.txt pyproject.toml constraints.txt README.md LICENSE
CXX_FILES := $(shell find core -name '*.cc' -o -name '*.h')

# Parallel test processes: one more than cores, because many tests wait for other processes.
JOBS ?= $(shell expr $$(nproc) + 1)
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations 25 --durations-min 5

# make test: selects tests by their marks, as pytest's option -m.
MARKS ?= not slow and not soak

# Native tests: SANITIZE selects sanitizers (address,undefined or thread), TESTS tests (a regex).
SANITIZE ?= address,undefined
TESTS ?= .
comma := ,
NATIVE := build/native-$(subst $(comma),-,$(SANITIZE))
# Sources per unity build file. Larger files take less total CPU time, but each core needs a file
# to compile.
TOGETHER := $(shell n=$$((84 / $$(nproc))); echo $$((n > 12 ? n : 12)))

# make fuzz: seconds per fuzz target of the core, targets (all if empty), and the factor for the
# number of cases in tests/fuzz.
FUZZ_S ?= 60
FUZZ ?=
FUZZ_TIMES ?= 20
CLANG ?= $(firstword $(shell command -v clang++ clang++-20 clang++-19 clang++-18 clang++-16 \
  clang++-14))

# Many containers set it; without bytecode every process would compile torch and tengen again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup train test older-tests native-tests lint format docs docs-serve web wheels soak fuzz clean
.DEFAULT_GOAL := help

help:
	@echo 'make setup         make .venv and build the core'
	@echo '                   TORCH=default takes the torch of pip, at the first set-up or after make clean'
	@echo 'make train         train gomoku/9 for ten minutes; again resumes'
	@echo 'make test          the default tests; MARKS="not soak" adds the slow tests'
	@echo 'make older-tests   tests of precision as on a processor with AVX2 and no more'
	@echo 'make native-tests  the C++ tests under SANITIZE=$(SANITIZE)'
	@echo 'make lint          ruff, mypy, clang-format; make format repairs'
	@echo 'make docs          build the site of docs/ into build/site; make docs-serve shows it'
	@echo 'make web           build the page of tengen serve; needs Node and npm'
	@echo 'make wheels        the sdist and the wheels, checked and tried; in dist/'
	@echo 'make soak          kills without number, and learning runs: many hours'
	@echo 'make fuzz          hostile files and requests, FUZZ_S=60 seconds a target; needs clang'
	@echo 'make clean         remove what was built, keep runs/'

setup: $(INSTALLED)

$(INSTALLED): $(SOURCES) scripts/preflight.py scripts/install.py
	@$(PYTHON) scripts/preflight.py
	@$(PYTHON) scripts/install.py

# Additional packages of tests, checks and pages. After a change of only the sources, tengen is
# installed again and these packages stay; then both stamps are up to date.
$(TESTED): pyproject.toml constraints.txt | $(INSTALLED)
	@$(PYTHON) scripts/preflight.py test
	@$(PYTHON) scripts/install.py test

train: $(INSTALLED)
	@$(BIN)/tengen train gomoku/9 --minutes 10

test: $(TESTED)
	@$(PYTEST) -m '$(MARKS)'

# Emulates a processor with AVX2 and nothing newer: no AVX-512, VNNI or bf16. Only files with the
# mark are passed, because pytest would take a while to read the others.
older-tests: $(TESTED)
	@$(BIN)/python scripts/older_processor.py $(PYTEST) -m 'precision and not soak' \
	  $$(grep -rl 'mark\.precision' tests --include='test_*.py')

soak: $(TESTED)
	@$(BIN)/python -m pytest -m soak || test $$? -eq 5

native-tests: $(TESTED)
	@$(BIN)/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -S . -B $(NATIVE) \
	  -DTENGEN_PYTHON=OFF -DTENGEN_NATIVE_TESTS=ON -DTENGEN_SANITIZE=$(SANITIZE) \
	  '-DTENGEN_TESTS_MATCH=$(TESTS)' \
	  -DCMAKE_BUILD_TYPE=Checked -DCMAKE_CXX_FLAGS_CHECKED="-O1 -g1" -Wno-dev \
	  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=$(TOGETHER)
	@$(BIN)/cmake --build $(NATIVE) --parallel $(shell nproc) --target native_tests
	@$(BIN)/ctest --test-dir $(NATIVE) --parallel $(JOBS) --output-on-failure

fuzz: $(TESTED)
	@test -n "$(CLANG)" || { echo 'make: clang++ must be installed, with its libFuzzer' >&2; exit 1; }
	@$(BIN)/cmake -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -S . -B build/fuzz \
	  -DCMAKE_CXX_COMPILER=$(CLANG) -DTENGEN_PYTHON=OFF -DTENGEN_FUZZ=ON \
	  -DTENGEN_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Checked \
	  -DCMAKE_CXX_FLAGS_CHECKED="-O1 -g1" -Wno-dev -DCMAKE_UNITY_BUILD=ON \
	  -DCMAKE_UNITY_BUILD_BATCH_SIZE=12
	@$(BIN)/cmake --build build/fuzz --parallel $(shell nproc) --target fuzz
	@scripts/fuzz.sh build/fuzz/fuzz $(FUZZ_S) $(FUZZ)
	@TENGEN_FUZZ_TIMES=$(FUZZ_TIMES) $(PYTEST) tests/fuzz

# The core's type stubs are generated when the core is built.
lint: $(TESTED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@cp "$$($(BIN)/python -c 'import pathlib, tengen._core as core; print(pathlib.Path(core.__file__).parent / "_core.pyi")')" src/tengen/
	@$(BIN)/mypy
	@$(BIN)/mypy benchmarks/*/*.py benchmarks/*/*/*.py
	@$(BIN)/mypy tests/user_scripts/*.py
	@$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)

format: $(TESTED)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/clang-format -i $(CXX_FILES)

# A missing link, anchor or page is an error; see mkdocs.yml.
docs: $(TESTED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-serve: $(TESTED)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

# The output is committed, so that only changes of the page need Node.
web:
	@cd web && npm ci --silent --no-fund --no-audit && npm run --silent check && npm run --silent build

# Uses every Python found on this machine; PYTHONS names folders with more.
wheels:
	@$(PYTHON) scripts/build_wheels.py $(addprefix --python ,$(PYTHONS))

clean:
	rm -rf build dist .venv web/node_modules .pytest_cache .mypy_cache .ruff_cache
