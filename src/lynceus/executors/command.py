"""From a configuration to a command. Values reach the job as arguments, environment variables and a JSON file, never through a shell.

Only with `shell: true` are values inserted into a shell script, and then they are quoted.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lynceus.errors import InputError, shown
from lynceus.executors.placeholders import as_text, fill
from lynceus.executors.serve import Serve
from lynceus.executors.shell_text import fill_script
from lynceus.executors.supervisor.files import PARAMS
from lynceus.executors.supervisor.process_tree import RUN_VARIABLE

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""A valid name of a shell variable."""
_PARAM = "LYNCEUS_PARAM_"
_ENVIRONMENT_OF_PROGRAMS = frozenset({"PATH", "HOME", "PWD", "OLDPWD", "SHELL", "USER", "LOGNAME"})
"""Where programs are found, and who runs them where."""
_SETTINGS_OF_SHELLS = frozenset(
    {"IFS", "ENV", "CDPATH", "GLOBIGNORE", "FPATH", "POSIXLY_CORRECT", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "SHLVL"}
)
"""How a shell reads its script."""
_SET_BY_SHELLS = frozenset(
    {
        "_",
        "COMP_WORDBREAKS",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "HOSTNAME",
        "HOSTTYPE",
        "LINENO",
        "MACHTYPE",
        "OPTARG",
        "OPTERR",
        "OPTIND",
        "OSTYPE",
        "PIPESTATUS",
        "PPID",
        "RANDOM",
        "REPLY",
        "SECONDS",
        "SRANDOM",
        "UID",
    }
)
"""What a shell sets by itself, whatever its environment says."""
_RESERVED_NAMES = _ENVIRONMENT_OF_PROGRAMS | _SETTINGS_OF_SHELLS | _SET_BY_SHELLS
_RESERVED_PREFIXES = ("BASH", "DYLD_", "LD_", "LYNCEUS_", "PYTHON")
SCRIPT = "script"
"""The file in a run directory that holds a job which is a script."""


@dataclass(frozen=True)
class Scratch:
    """The scratch directory of every run, see `supervisor.scratch`."""

    where: Literal["none", "env", "cwd"] = "env"
    """`env`: the job finds its path in LYNCEUS_SCRATCH. `cwd`: the job is started in it, too."""
    copy: tuple[str, ...] = ()
    """Patterns of files and folders in the working directory that are copied into it; only with `cwd`."""
    link: tuple[str, ...] = ()
    """The same for symbolic links."""
    keep: bool = False
    """Whether it stays in the run directory after the run."""


@dataclass(frozen=True)
class Target:
    """A value that a metric has to reach while a run trains; a run whose learning curve says that it will not is stopped."""

    metric: str
    bound: float
    at_least: bool
    end_s: float | None
    """The longest useful run, seconds; None: the run's own end or timeout."""
    error_rate: float
    """The chance of stopping a run that would have reached it."""


@dataclass(frozen=True)
class JobCommand:
    """What to run for every configuration."""

    run: tuple[str, ...] | str
    """An argv list, or a script. `${name}` in an element of the list is replaced by the parameter's value."""
    shell: bool = False
    """Whether `${name}` in a script is replaced by the quoted value; otherwise a script reads values from its environment."""
    workdir: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of this process; `${name}` in a value is replaced by the parameter's value."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Like `env`, but never written to disk; their values are masked in the output."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metric → regular expression with one group, searched in every line of output; the last match counts."""
    grace_s: float = 5.0
    """Seconds between SIGTERM and SIGKILL. They are reserved with the timeout, and charged as far as the job uses them."""
    output_bytes: int = 1 << 20
    """How much of each stream is kept: half from the beginning, half from the end."""
    conditional: tuple[str, ...] = ()
    """Parameters that some configurations lack; a run without them finds no variable of that name, whoever set one."""
    scratch: Scratch = Scratch()
    """The directory that each run has for itself."""
    targets: tuple[Target, ...] = ()
    """Stop runs that will not reach one of them."""
    serve: Serve | None = None
    """How the server that `run` starts is measured; None: `run` is the whole job."""

    def __post_init__(self) -> None:
        if not self.run or (not isinstance(self.run, str) and not self.run[0]):
            raise InputError("run: there is no command; give an argv list such as [python, train.py], or a script.")
        if self.shell and not isinstance(self.run, str):
            raise InputError("run: 'shell: true' needs a script, not a list; write the command as one text.")
        if self.grace_s < 0 or self.output_bytes < 1:
            raise InputError("trial: grace must not be negative, and at least 1 byte of output must be kept.")
        for name, pattern in self.metrics.items():
            try:
                check_pattern(pattern)
            except InputError as error:
                raise InputError(f"metrics: {name!r}: {error}") from None


def check_pattern(pattern: str) -> None:
    """Refuse a regular expression that cannot give one number."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what a later Python may read differently
            groups = re.compile(pattern).groups
    except (re.error, OverflowError) as error:
        raise InputError(f"{shown(pattern)} is not a valid regular expression: {error}.") from None
    except RecursionError:
        raise InputError(f"{shown(pattern)} is not a valid regular expression: it is nested too deeply.") from None
    if groups != 1:
        raise InputError(f"{shown(pattern)} has {groups} groups; put one pair of parentheses around the number.")


def variable(name: str) -> str:
    """The environment variable of a parameter.

    >>> variable("batch-size")
    'LYNCEUS_PARAM_BATCH_SIZE'
    """
    return _PARAM + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def is_reserved(name: str) -> bool:
    """Whether a shell or the programs of a script would break, or never see the value, if a parameter set the variable `name`.

    >>> is_reserved("PATH"), is_reserved("LD_PRELOAD"), is_reserved("threads")
    (True, True, False)
    """
    return name in _RESERVED_NAMES or name.startswith(_RESERVED_PREFIXES)


def variables(job: JobCommand, params: Mapping[str, object]) -> dict[str, str]:
    """The variables that pass the values of a configuration: in scripts also under the parameters' own names.

    >>> variables(JobCommand("sort --parallel=$threads"), {"threads": 4})
    {'threads': '4', 'LYNCEUS_PARAM_THREADS': '4'}
    """
    values = {name: as_text(value) for name, value in params.items()}
    plain = {name: text for name, text in values.items() if has_own_variable(job, name)}
    return {**plain, **{variable(name): text for name, text in values.items()}}


def has_own_variable(job: JobCommand, name: str) -> bool:
    """Whether a run finds a parameter under its own name, besides `LYNCEUS_PARAM_NAME`."""
    explicit = name in job.env or name in job.secrets
    return isinstance(job.run, str) and _NAME.fullmatch(name) is not None and not is_reserved(name) and not explicit


def absent_variables(job: JobCommand, params: Mapping[str, object]) -> list[str]:
    """Variables of parameters that this configuration lacks: a value that a run inherits there is not its own."""
    missing = [name for name in job.conditional if name not in params]
    return [*(name for name in missing if has_own_variable(job, name)), *map(variable, missing)]


def arguments(job: JobCommand, params: Mapping[str, object], directory: Path) -> tuple[list[str], bool]:
    """The argv of a run, and whether its last element names a script in the run directory. The script is written here.

    >>> arguments(JobCommand(("train", "--lr=${lr}", "$(reboot)")), {"lr": 0.1}, Path())
    (['train', '--lr=0.1', '$(reboot)'], False)
    """
    if not isinstance(job.run, str):
        return [fill(element, params) for element in job.run], False
    if job.shell:
        return ["/bin/sh", "-c", fill_script(job.run, params)], False
    script = directory / SCRIPT
    script.write_text(job.run, encoding="utf-8", errors="surrogateescape")
    first, _, _ = job.run.partition("\n")
    if first.startswith("#!"):
        script.chmod(0o755)
        return [SCRIPT], True
    return ["/bin/sh", "-e", SCRIPT], True


def environment(job: JobCommand, request: Mapping[str, Any], base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a run, given its `request.json`; the supervisor adds the paths of parameters and results.

    `base` is extended with the job's variables: our own environment, or an empty one for nodes that have their own, from which
    `absent_variables` are then removed. Values of parameters replace variables of `base`.
    """
    params: Mapping[str, object] = request["params"]
    absent = set(absent_variables(job, params))
    inherited = {name: text for name, text in base.items() if name not in absent and not name.startswith(_PARAM)}
    return {
        **inherited,
        **{name: fill(text, params) for name, text in job.env.items()},
        **job.secrets,
        **variables(job, params),
        "LYNCEUS_STUDY": request["study"],
        "LYNCEUS_TRIAL": str(request["number"]),
        RUN_VARIABLE: request["run"],
    }


def write_params(params: Mapping[str, object], directory: Path) -> None:
    """Write the values as JSON, with their types."""
    (directory / PARAMS).write_text(json.dumps(dict(params)), encoding="utf-8")
