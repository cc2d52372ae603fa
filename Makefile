# Needs make and Python 3.11 or newer; no compiler. Everything else is installed into .venv.
#   make train    two language models learn against each other (about 10 minutes on 2 cores, 8 GB of memory)
#   make train PRESET=tabular    players without a language model (under 3 minutes)
#   make test     all tests
#   make lint     ruff and mypy
#   make build    wheel and sdist in dist/
# More arguments: make train ARGS="--seed 1", make test ARGS="tests/test_rewards.py -q".

VENV := .venv
ARGS :=
# Tests that run at the same time. One only: make test JOBS=0
JOBS := 2
PRESET := smollm2-cpu
# Tried in this order; `make train PYTHON=/path/to/python` asks for one.
PYTHON := python3 python3.14 python3.13 python3.12 python3.11 python
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# PyPI's torch for Linux brings gigabytes for GPUs. Where there is none, the build for processors is enough. An
# index that cannot be reached is not waited for.
ifeq ($(shell command -v nvidia-smi),)
TORCH_INDEX := --retries 0 --extra-index-url https://download.pytorch.org/whl/cpu
endif

.PHONY: help train test lint build clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

train: $(VENV)/.installed
	@$(RUN) -m codea1_env.cli train $(if $(PRESET),--preset $(PRESET)) $(ARGS)

test: $(VENV)/.installed-dev
	$(RUN) -m pytest --numprocesses $(JOBS) --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.installed-dev
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy --strict

build: $(VENV)/.installed-dev
	$(RUN) -m build --outdir dist

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The stamps are written last, so that an interrupted installation is done again.
$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@if ! $(RUN) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    $(FIND_PYTHON); \
	    echo "Creating $(VENV) with $$python"; \
	    $$python -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing codea1_env and what it needs into $(VENV) (once)"
	@$(INSTALL) --quiet $(TORCH_INDEX) torch || true
	@$(INSTALL) --editable '.[llm]' || { $(INSTALL_FAILED); }
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing the tools for tests and checks into $(VENV) (once)"
	@$(INSTALL) --editable '.[dev,llm]' || { $(INSTALL_FAILED); }
	@touch $@

# Sets the shell variable `python`, or says what is missing. Debian and Ubuntu ship venv separately.
define FIND_PYTHON
python=; old=; bare=; \
for candidate in $(PYTHON); do \
    version=$$($$candidate -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
    $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { old="$$old $$candidate ($$version)"; continue; }; \
    $$candidate -c 'import ensurepip, venv' 2>/dev/null || { bare="$$bare python$$version-venv"; continue; }; \
    python=$$candidate; break; \
done; \
if [ -z "$$python" ] && [ -n "$$bare" ]; then \
    set -- $$bare; \
    echo "Python is here, but its module venv is not. Install it (Debian, Ubuntu: apt install $$1) and try again." >&2; exit 1; \
fi; \
if [ -z "$$python" ]; then \
    echo "Expect Python 3.11 or newer, found:$${old:- none}. Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; \
fi
endef

INSTALL_FAILED = echo "The installation failed (see above). Once the cause is removed, run make again." >&2; exit 1
