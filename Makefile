# Needs make and Python 3.11 or newer; no compiler. Everything else is installed into .venv.
#   make train    two language models learn against each other (about 10 minutes on 2 cores, 8 GB of memory)
#   make train PRESET=reading    one of them learns to break programs that a script plants faults in (under 10 minutes)
#   make train PRESET=tabular    players without a language model (under 3 minutes, no torch)
#   make test     all tests
#   make test-fast    those for the loop of daily work, without language models (about a minute)
#   make lint     ruff and mypy
#   make size     raw lines of each room beside its budget
#   make build    wheel and sdist in dist/
#   make docs     the site, in build/site; the first time runs are played for its gallery, which takes minutes
# More arguments: make train ARGS="--seed 1", make test ARGS="tests/test_rewards.py -q".

VENV := .venv
ARGS :=
# Tests that run at the same time. One only: make test JOBS=0
JOBS := 2
PRESET := smollm2-cpu
GALLERY := build/gallery/gallery/leaderboard.html
# Tried in this order; `make train PYTHON=/path/to/python` asks for one.
PYTHON := python3 python3.14 python3.13 python3.12 python3.11 python
RUN := $(VENV)/bin/python
# Quiet but for errors, and no minutes of waiting for a network that is not there: what happens is said by us.
# Modules are compiled when they are first imported: all of them would take a minute and a half, and most are never used.
unexport PYTHONDONTWRITEBYTECODE # where an image sets it, each process would compile for itself: torch and TRL, 22 s
INSTALL := $(RUN) -m pip install -qq --no-compile --disable-pip-version-check --retries 1 --timeout 15 --constraint constraints.txt
TORCH_CPU := https://download.pytorch.org/whl/cpu
# Torch and TRL are fetched where a language model plays.
LLM := $(if $(shell grep -sE '"llm"|^extends' codea1_env/training/presets/$(PRESET).toml)$(findstring llm,$(ARGS)),$(VENV)/.installed-llm)

.PHONY: help train test test-fast lint size build docs gallery clean
.DELETE_ON_ERROR:
.NOTPARALLEL: # two pips in one folder

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

train: $(VENV)/.installed $(LLM)
	@$(RUN) -m codea1_env.cli train $(if $(PRESET),--preset $(PRESET)) $(ARGS)
	@$(if $(filter tabular,$(PRESET)),$(RUN) examples/adversary.py,:)

test: $(VENV)/.installed-llm $(VENV)/.installed-test
	$(RUN) -m pytest --numprocesses $(JOBS) --no-loadscope-reorder $(ARGS)

test-fast: $(VENV)/.installed-test
	$(RUN) -m pytest --numprocesses $(JOBS) --no-loadscope-reorder -m 'not slow' $(ARGS)

lint: $(VENV)/.installed-lint
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy --strict

size: $(VENV)/.installed
	@$(RUN) .ci/size.py

build: $(VENV)/.installed-build
	$(RUN) -m build --no-isolation --outdir dist
	$(RUN) -m twine check --strict dist/*

docs: $(VENV)/.installed-docs $(GALLERY)
	$(RUN) -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/site
	@echo "build/site/index.html"

# Runs are played for it, which takes minutes: once, or whenever it is asked for.
gallery: $(VENV)/.installed-docs
	$(RUN) docs/gallery.py build/gallery

$(GALLERY): | $(VENV)/.installed-docs
	$(RUN) docs/gallery.py build/gallery

clean:
	rm -rf $(VENV) build dist docs/_made *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The stamps are written last, so that an interrupted installation is done again. Old versions of pip, which come
# with Python, take a minute longer to choose among files; where no newer one is in reach, they do.
$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@if ! $(RUN) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    $(FIND_PYTHON); \
	    echo "Creating $(VENV) with $$python"; \
	    $$python -m venv --clear $(VENV) || exit 1; \
	    $(INSTALL) pip 2>/dev/null || :; \
	fi
	@$(call STEP,codea1_env$(,) what the game needs$(,) and its report (57 MB to download$(,) 190 MB on disk),--editable '.[report]')
	@touch $@

# PyPI's torch for Linux brings gigabytes for GPUs. Where there is none, the build for processors is enough.
$(VENV)/.installed-llm: $(VENV)/.installed
	@if ! $(RUN) -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then \
	    what="torch for GPUs ($(TORCH_GPU_SIZE))"; index=; \
	    if command -v nvidia-smi >/dev/null; then :; \
	    elif $(INSTALL) --dry-run --no-index --no-deps torch >/dev/null 2>&1; then \
	        what="torch from a folder of this machine"; \
	    elif $(RUN) -c 'import urllib.request as r; r.urlopen("$(TORCH_CPU)/torch/", timeout=5)' 2>/dev/null; then \
	        what="torch for processors (200 MB to download, 870 MB on disk)"; \
	        index="--extra-index-url $(TORCH_CPU)"; \
	    else \
	        echo "The builds of torch for processors ($(TORCH_CPU)) are not in reach;"; \
	        echo "PyPI has only those for GPUs: $(TORCH_GPU_SIZE). If that is too much, press Ctrl-C, and bring"; \
	        echo "the wheel for processors (PIP_FIND_LINKS=FOLDER make ...) or do without (make train PRESET=tabular)."; \
	    fi; \
	    $(call STEP,$$what,$$index torch); \
	fi
	@$(call STEP,what trains language models (100 MB to download$(,) 450 MB on disk),'codea1-env[llm]')
	@touch $@
	@$(RUN) -c 'import trl.trainer.grpo_trainer' >/dev/null 2>&1 & # compiles it while more is installed

test_NEEDS := the tools for tests (up to 250 MB to download, 720 MB on disk)
lint_NEEDS := the tools for checks (27 MB to download, 80 MB on disk)
build_NEEDS := the tools for builds (10 MB to download, 30 MB on disk)
docs_NEEDS := the tools for the site (up to 80 MB to download, 230 MB on disk)

# What is installed already tells what its extra needs: nothing is built once more.
$(VENV)/.installed-%: $(VENV)/.installed
	@$(call STEP,$($*_NEEDS),'codea1-env[$*]')
	@touch $@

# $(call STEP,WHAT,ARGUMENTS OF PIP) installs something: says so, says every 15 seconds that it goes on, and tries
# once more where it failed, but not after Ctrl-C. What speaks in between ends with its shell, however that ends.
, := ,
define STEP
echo "Installing into $(VENV): $(1)"; \
begun=$$(date +%s); trap 'kill $$beat; exit 130' INT; \
{ while sleep 15 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do \
    echo "  still at it, $$(($$(date +%s) - begun)) s, $$(du -sm $(VENV) | cut -f1) MB in $(VENV)"; done & }; beat=$$!; \
$(INSTALL) $(2) || { echo "That failed. Once more, the last time:"; sleep 2; $(INSTALL) $(2); } \
    || { kill $$beat; $(INSTALL_FAILED); }; \
kill $$beat; echo "  done in $$(($$(date +%s) - begun)) s"
endef

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

TORCH_GPU_SIZE := 2.7 GB to download, 4.8 GB on disk

INSTALL_FAILED = echo "The installation failed (see above). Once the cause is removed, run make again." >&2; exit 1
