# The course from the command line. Every target sets up what it needs in .venv; `make` alone lists the targets.
#
#   PYTHON=/path/to/python3   the Python to make .venv from (3.10 to 3.14)
#   VENV=DIR                  another place for the environment; VENV=none runs in $(PYTHON) as it is (conda)
#   WORKERS=N                 processes that share the tests (default: one for each core, 2 to 8)
#   TESTS=all                 `make test` also runs the tests marked slow: an hour or two on two cores
#   ARGS="..."                further arguments for JupyterLab, pytest, the course or the benchmarks
#
# Works with GNU make 3.81 too, the version that macOS ships.

VENV ?= .venv
# With one more than cores, two cores take as long, and a tenth more CPU time.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 2 ? 2 : n > 8 ? 8 : n)))
ARGS ?=
LAB_ARGS ?= $(ARGS)

# An environment that serves several clones has installed the packages of one of them: these are this clone's.
export PYTHONPATH := $(CURDIR):$(CURDIR)/kernel_xray/src$(if $(PYTHONPATH),:$(PYTHONPATH))
ifeq ($(VENV),none)
PY := $(or $(PYTHON),python3)
else
PY := $(VENV)/bin/python
export PATH := $(abspath $(VENV))/bin:$(PATH)
endif
export JUPYTER_PREFER_ENV_PATH := 1
# With this variable set, each of some fifty processes would compile PyTorch's Python sources again, seconds each time.
export PYTHONDONTWRITEBYTECODE :=

# PyTorch, in the version of constraints.txt, has wheels for these.
FITS := import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))
CANDIDATES := python3 python3.13 python3.12 python3.11 python3.10 python3.14 python
TESTS ?= quick
ifeq ($(filter quick all,$(TESTS)),)
$(error TESTS must be quick or all, got $(TESTS))
endif
MARKED := not wheels$(if $(filter all,$(TESTS)),, and not slow)
NBVAL := --nbval-lax --nbval-current-env --nbval-cell-timeout=300

.PHONY: help setup lock lab test course book bench mutants classroom new-op format clean distclean
.DEFAULT_GOAL := help

help: ## list the targets
	@echo "The Kernel Ladder. Targets:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F '|' '{ printf "%-18s %s\n", $$1, $$2 }'

setup: ## make .venv and install the course's packages; does nothing if that is done
ifneq ($(VENV),none)
	@found=; \
	for candidate in $(or $(PYTHON),$(CANDIDATES)); do \
	  if "$$candidate" -c '$(FITS)' >/dev/null 2>&1; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "set-up: no Python 3.10 to 3.14 in: $(or $(PYTHON),$(CANDIDATES))." \
	    "Install one, or name it: make setup PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	"$$found" -I helpers/set_up.py --venv "$(VENV)" $(if $(PYTHON),--only-this-python) $(EXTRAS)
endif

# uv, which set-up installs the rest with, is in the list too. The hashes are those of PyPI for the files of all platforms.
lock: ## write hashes/pypi.txt anew, after a change of pyproject.toml or constraints.txt
	@echo uv | $(PY) -m uv pip compile pyproject.toml - --all-extras -c constraints.txt --universal --python-version 3.10 \
	  --default-index https://pypi.org/simple --generate-hashes --no-annotate --quiet -o hashes/pypi.txt \
	  --custom-compile-command "make lock"

# The tools of `make test` come with the first `make test` or `make setup`.
lab: EXTRAS := --lessons-only
lab: setup ## check the machine, build and run a first kernel, open your copies of the lessons in JupyterLab
	@$(PY) -m helpers doctor
	@$(PY) -m helpers starters
	@exec $(PY) -m helpers lab $(LAB_ARGS)

# One compile thread keeps torch.compile from starting a pool of processes, and trusting the CPU's feature flags saves one
# trial process per vector instruction set: each of these processes would import torch again.
test: export TORCHINDUCTOR_COMPILE_THREADS := 1
test: export TORCHINDUCTOR_VEC_ISA_OK := 1
# Inductor compiles headers for six seconds each time before it compiles a kernel with them; here each serves two or three.
test: export TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS := 0
# The quick suite's kernels run for milliseconds and are compiled for seconds; TESTS=all has the lessons' -O2.
test: export KERNEL_XRAY_OPTIMISATION := $(if $(filter all,$(TESTS)),-O2,-Og)
# A worker has a core: PyTorch's threads would wait for each other in turns of the processor.
test: export OMP_NUM_THREADS := $(or $(OMP_NUM_THREADS),1)
# `import torch` first where set-up has not done so: workers that start at the same time would each compile its sources.
test: EXTRAS := $(if $(filter all,$(TESTS)),--extra triton)
test: setup ## run all checks: style, types, notebooks' form, unit and simulator tests, every notebook under nbval
	@failed=0; \
	echo "test: tests/, kernel_xray/tests/ and notebooks/; meanwhile, style and types of the sources, a first kernel"; \
	{ $(PY) -m ruff check --quiet . || failed=1; \
	  $(PY) -m ruff format --check --quiet . || failed=1; \
	  $(PY) -m mypy || failed=1; \
	  $(PY) -m helpers first-kernel || failed=1; \
	  $(PY) -m helpers.pages.notebooks.canonical --check notebooks || failed=1; \
	  exit $$failed; } & beside=$$!; \
	$(if $(filter none,$(VENV)),$(PY) -c "import torch" || failed=1;) \
	$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "$(MARKED)" $(NBVAL) $(ARGS) \
	  tests kernel_xray/tests notebooks || failed=1; \
	wait $$beside || failed=1; \
	if [ $$failed = 1 ]; then echo "test: something above failed" >&2; fi; \
	exit $$failed

course: setup ## execute every notebook and write pages under build/course/
	@$(PY) -m helpers course $(ARGS)

# Sphinx and its theme are in the extra [book], which only this target installs.
book: EXTRAS := --extra book
book: setup ## write the course as a book, under build/book/
	@$(PY) -m helpers book $(ARGS)

bench: setup ## time the loop from an edited kernel to its result, beside stock PyTorch
	@$(PY) -m helpers bench $(or $(ARGS),--build)

mutants: setup ## make one small mistake at a time in the kernels and list those that no check finds (hours)
	@$(PY) -m helpers mutants $(ARGS)

COURSE := four_weeks
OUT := build/classroom

classroom: setup ## write the students' copy, without solutions: make classroom COURSE=four_weeks OUT=build/classroom
	@$(PY) -m helpers handout "$(COURSE)" --out "$(OUT)" $(ARGS)

new-op: setup ## write packages/NAME, a package for an operator of your own: make new-op NAME=demo
	@$(PY) -m helpers new-op "$(NAME)" $(ARGS)

format: setup ## format Python, kernels and notebooks
	@$(PY) -m ruff check --fix --quiet .
	@$(PY) -m ruff format --quiet .
	@find kernels kernel_xray/src \( -name '*.cu' -o -name '*.cuh' -o -name '*.h' -o -name '*.inc' -o -name '*.cpp' \) \
	  -exec clang-format -i {} +
	@$(PY) -m helpers.pages.notebooks.canonical --fix notebooks

clean: ## remove build products, but not .venv
	@rm -rf build .pytest_cache .ruff_cache .mypy_cache
	@find . -path './.venv' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	@rm -rf .venv *.egg-info
