"""Malformed job files: each error is one sentence with the file, the line, the field and the fix."""

from __future__ import annotations

import sys

import pytest

from lynceus.cli.app import main
from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

GOOD = """\
version: 1
name: pipeline
run: [sort, "--parallel=${threads}", data.txt]
space:
  threads: [1, 2, 4]
  level: {int: [1, 9]}
price: 0.05 * threads
constraints: ["runtime <= 10m"]
budget: {cost: 1 USD, max_trials: 20}
trial: {parallel: 2}
"""


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


CASES: dict[str, tuple[str, str]] = {
    "price with its unit": (
        changed("price: 0.05 * threads", "price: $0.05"),
        "job.yaml:7: price: got '$0.05'; write only the number, 0.05, which means dollars per hour.",
    ),
    "price with a unit behind it": (
        changed("price: 0.05 * threads", "price: 0.05 USD per hour"),
        "job.yaml:7: price: got '0.05 USD per hour'; write only the number, 0.05, which means dollars per hour.",
    ),
    "unknown field of an executor": (
        GOOD + "executor: {kind: local, queue: fast}\n",
        "job.yaml:11: executor.queue: there is no field 'queue'; known are kind, run_directory.",
    ),
    "unknown field": (
        changed("budget:", "budgett:"),
        "job.yaml:9: budgett: there is no field 'budgett'; did you mean 'budget'?",
    ),
    "unknown nested field": (
        changed("max_trials", "max_trial"),
        "job.yaml:9: budget.max_trial: there is no field 'max_trial'; did you mean 'max_trials'?",
    ),
    "field outside its section": (
        GOOD + "grace: 5s\n",
        "job.yaml:11: grace: 'grace' is a field of trial; write it there: trial: {grace: '5s'}.",
    ),
    "list outside its section": (
        GOOD + "shares: [0.1]\n",
        "job.yaml:11: shares: 'shares' is a field of probe; write it there: probe: {shares: …}.",
    ),
    "run missing": (
        changed('run: [sort, "--parallel=${threads}", data.txt]\n', ""),
        "run: the field 'run' is missing; add it, or 'serve' for a server under load.",
    ),
    "name missing": (changed("name: pipeline\n", ""), "name: the field 'name' is missing; add it."),
    "name with a slash": (
        changed("name: pipeline", "name: a/b"),
        "job.yaml:2: name: got 'a/b'; use up to 100 letters",
    ),
    "a future version": (changed("version: 1", "version: 2"), "job.yaml:1: version: got 2; known are 1."),
    "empty run": (
        changed('run: [sort, "--parallel=${threads}", data.txt]', "run: []"),
        "job.yaml:3: run: expected a list of arguments",
    ),
    "run as a mapping": (
        changed('run: [sort, "--parallel=${threads}", data.txt]', "run: {a: 1}"),
        "job.yaml:3: run: expected a list of",
    ),
    "unknown placeholder": (
        changed("${threads}", "${thread}"),
        "job.yaml:3: run.1: ${thread} is not a parameter of the space. Did you mean 'threads'?",
    ),
    "a name that a shell cannot read": (
        changed('[sort, "--parallel=${threads}", data.txt]', '"sort --parallel=${my-threads}"')
        .replace("  threads:", "  my-threads:")
        .replace("* threads", "+ 0"),
        'job.yaml:3: run: a shell cannot read ${my-threads} as that parameter; write "$LYNCEUS_PARAM_MY_THREADS" in the script.',
    ),
    "a value that may be absent": (
        changed("[1, 2, 4]", "[1, 2, 4]\n  extra: {choice: [1], when: threads > 1}").replace("${threads}", "${extra}"),
        "job.yaml:3: run.1: ${extra} has no value where its condition 'threads > 1' is false",
    ),
    "shell with arguments": (
        changed("version: 1", "version: 1\nshell: true"),
        "job.yaml:4: run: shell: true needs a script",
    ),
    "no parameters": (
        changed("space:\n  threads: [1, 2, 4]\n  level: {int: [1, 9]}", "space: {}"),
        "job.yaml:4: space: it has no parameters",
    ),
    "space misspelt": (
        changed("space:", "spcae:"),
        "job.yaml:4: spcae: there is no field 'spcae'; did you mean 'space'?",
    ),
    "range of three": (
        changed("[1, 9]", "[1, 5, 9]"),
        "job.yaml:6: space.level.int: got [1, 5, 9]; write [lowest, highest]",
    ),
    "range upside down": (changed("[1, 9]", "[9, 1]"), "job.yaml:6: space.level: low 9 is above high 1"),
    "range misspelt": (
        changed("{int: [1, 9]}", "{int: [1, 9], stepp: 2}"),
        "job.yaml:6: space.level.stepp: there is no field 'stepp'; did you mean 'step'?",
    ),
    "two kinds": (
        changed("{int: [1, 9]}", "{int: [1, 9], ordinal: [a]}"),
        "job.yaml:6: space.level: it has both ordinal and int",
    ),
    "a range without bounds": (
        changed("{int: [1, 9]}", "{log: true}"),
        "job.yaml:6: space.level: it has no values; add int",
    ),
    "log without steps": (changed("{int: [1, 9]}", "{int: [1, 9], log: true}"), "job.yaml:6: space.level: a log"),
    "half a step": (
        changed("{int: [1, 9]}", "{int: [1, 9], step: 0.5}"),
        "job.yaml:6: space.level: got step 0.5 for whole",
    ),
    "a value twice": (changed("[1, 2, 4]", "[1, 2, 2]"), "job.yaml:5: space.threads: the value 2 is listed twice"),
    "a scalar as parameter": (changed("[1, 2, 4]", "4"), "job.yaml:5: space.threads: got 4; write a list of values"),
    "an empty list": (changed("[1, 2, 4]", "[]"), "job.yaml:5: space.threads"),
    "forbid in space": (
        changed("  level:", "  forbid: ['threads > 1']\n  level:"),
        "space: 'forbid' belongs beside space",
    ),
    "forbid of an unknown column": (
        GOOD + "forbid: ['threads > 2', 'thread == 1']",
        "job.yaml:11: forbid.1: 'thread == 1' uses the unknown name 'thread'",
    ),
    "forbid everything": (GOOD + "forbid: ['threads > 0']", "job.yaml:11: forbid.0: 'threads > 0' removes the last 27"),
    "forbid with a call": (GOOD + "forbid: ['open(1)']", "job.yaml:11: forbid.0: "),
    "no price": (
        changed("price: 0.05 * threads\n", ""),
        "the price of a configuration is missing; give dollars per hour",
    ),
    "a price of zero": (
        changed("0.05 * threads", "threads - 1"),
        "job.yaml:7: price: The price 'threads - 1' is 0 in rows 1, 2, 3",
    ),
    "a price over unknown columns": (changed("0.05 * threads", "0.05 * cores"), "job.yaml:7: price: "),
    "an unreadable constraint": (changed("runtime <= 10m", "runtime < = 10m"), "job.yaml:8: constraints.0: "),
    "a deadline in parsecs": (
        changed("10m", "10pc"),
        "job.yaml:8: constraints.0: the bound in 'runtime <= 10pc' is '10pc'",
    ),
    "a confidence above one": (changed("10m", "10m @ 1.5"), "job.yaml:8: constraints.0: confidence 1.5"),
    "an impossible objective": (GOOD + "objective: maximize cost", "job.yaml:11: objective: maximising cost"),
    "budget in euros": (
        changed("1 USD", "1 EUR"),
        "job.yaml:9: budget.cost: the amount is '1 EUR', but dollars such as '25 USD'",
    ),
    "an empty budget": (changed("{cost: 1 USD, max_trials: 20}", "{}"), "job.yaml:9: budget: it has no limit"),
    "no trials": (changed("max_trials: 20", "max_trials: 0"), "job.yaml:9: budget.max_trials: got 0; it should be"),
    "a budget below one boot": (
        GOOD + "billing: {boot: 48h}",
        "job.yaml:9: budget: $1.00 does not even pay for starting the cheapest",
    ),
    "parallel as a string": (
        changed("parallel: 2", "parallel: two"),
        "job.yaml:10: trial.parallel: got 'two'; expected a whole number.",
    ),
    "timeout as a duration": (
        changed("parallel: 2", "timeout: 30m"),
        "job.yaml:10: trial.timeout: '30m' is a duration, but timeout names a rule",
    ),
    "an unknown timeout": (
        changed("parallel: 2", "timeout: atuo"),
        "job.yaml:10: trial.timeout: there is no rule 'atuo'. Did you mean 'auto'?",
    ),
    "retries below zero": (
        changed("parallel: 2", "retries: {job: -1}"),
        "job.yaml:10: trial.retries.job: got -1; it should be",
    ),
    "an unknown policy": (GOOD + "policy: lynkeus", "job.yaml:11: policy: there is no 'lynkeus'"),
    "an unknown executor": (
        GOOD + "executor: {kind: mars}",
        "job.yaml:11: executor.kind: There is no executor 'mars'.",
    ),
    "fidelity": (
        GOOD + "fidelity: {values: [1, 2]}",
        "'fidelity' is not used here; make the fraction of the data a parameter",
    ),
    "a fraction over an unknown parameter": (
        GOOD + "fraction: levl",
        "fraction: 'levl' is not a parameter of the space. Did you mean",
    ),
    "a fraction in percent": (GOOD + "fraction: level", "fraction: level holds 2; a fraction of the data lies above 0"),
    "a fraction as a number": (GOOD + "fraction: 3", "fraction: got 3; name the parameter"),
    "a fraction misspelt": (GOOD + "fraction: {column: level, answer: all}", "fraction.answer: "),
    "notify": (
        GOOD + "notify: [me]",
        "job.yaml:11: notify: got a list; expected a mapping of fields: webhook, mail, apprise, on.",
    ),
    "a secret's value": (
        GOOD + "secrets: {TOKEN: hunter2}",
        "job.yaml:11: secrets.TOKEN: a secret is given by reference only",
    ),
    "a secret that is an env": (
        GOOD + "secrets: {A: 'env:A'}\nenvs: {A: b}",
        "job.yaml:11: secrets.A: A is also in envs",
    ),
    "a bad variable": (GOOD + "envs: {A-B: b}", "envs"),
    "a metric without a group": (GOOD + "metrics: {a: 'a=[0-9]+'}", "job.yaml:11: metrics.a: 'a=[0-9]+' has 0 groups"),
    "a regular expression of which Python warns": (
        GOOD + "metrics: {a: 'a=[[0-9]+)'}",
        "job.yaml:11: metrics.a: 'a=[[0-9]+)' is not a valid regular expression",
    ),
    "an invalid regular expression": (
        GOOD + "metrics: {a: '(a'}",
        "job.yaml:11: metrics.a: '(a' is not a valid regular expression",
    ),
    "a baseline outside": (
        GOOD + "baseline: {threads: 3, level: 1}",
        "job.yaml:11: baseline: The parameter 'threads' cannot be 3",
    ),
    "a baseline with a misspelt field": (
        GOOD + "baseline: {config: {threads: 2, level: 1}, run_time: 41m}",
        "job.yaml:11: baseline.run_time: there is no field 'run_time'; did you mean 'runtime'?",
    ),
    "a baseline without its configuration": (
        GOOD + "baseline: {measure: true}",
        "job.yaml:11: baseline.config: the field 'config' is missing; add it.",
    ),
    "a baseline whose configuration has no field": (
        GOOD + "baseline: {threads: 2, level: 1, runtime: 41m}",
        "job.yaml:11: baseline: beside runtime and measure, the configuration needs a field: {config: {…}, runtime: 41m}.",
    ),
    "a measured baseline outside": (
        GOOD + "baseline: {config: {threads: 3, level: 1}, measure: true}",
        "job.yaml:11: baseline.config: The parameter 'threads' cannot be 3",
    ),
    "a baseline that is no mapping": (
        GOOD + "baseline: 3",
        "job.yaml:11: baseline: got 3; write a configuration, or {config: …, runtime: 41m}.",
    ),
    "a baseline known twice": (
        GOOD + "baseline: {config: {threads: 2, level: 1}, runtime: 41m, measure: true}",
        "job.yaml:11: baseline: runtime says what measure would find out; give one of them.",
    ),
    "a baseline of no time": (
        GOOD + "baseline: {config: {threads: 2, level: 1}, runtime: 0s}",
        "job.yaml:11: baseline.runtime: a run of 0 seconds came; give the time of a run, such as 41m.",
    ),
    "a baseline before its time": (
        GOOD + "baseline: {config: {threads: 2, level: 1}, runtime: -4}",
        "job.yaml:11: baseline.runtime: the duration is -4, but a finite amount of at least 0 is needed.",
    ),
    "a baseline of endless time": (
        GOOD + "baseline: {config: {threads: 2, level: 1}, runtime: .inf}",
        "job.yaml:11: baseline.runtime: the duration is inf, but a finite amount",
    ),
    "a baseline measured in words": (
        GOOD + "baseline: {config: {threads: 2, level: 1}, measure: 'yes'}",
        "job.yaml:11: baseline.measure: got 'yes'; expected true or false.",
    ),
    "a baseline that no trial may run": (
        GOOD.replace("level: {int: [1, 9]}", "share: [0.5, 1.0]")
        + "fraction: {column: share, test: samples}\nbaseline: {config: {threads: 2, share: 1.0}, measure: true}",
        "job.yaml:12: baseline: measure is true, but trials may not run this configuration (see fraction.test); give its",
    ),
    "a future use without a form": (
        GOOD + "future: 100",
        "job.yaml:11: future: got 100; write {runs: 100}, or {per_month: 30, months: 6}.",
    ),
    "a future use in both forms": (
        GOOD + "future: {runs: 100, per_month: 30, months: 6}",
        "job.yaml:11: future: runs and per_month with months say the same thing twice; give one of them.",
    ),
    "a future use without an end": (
        GOOD + "future: {per_month: 30}",
        "job.yaml:11: future: per_month is 30 without months; add for how long, such as months: 6.",
    ),
    "a future use without a rate": (
        GOOD + "future: {months: 6}",
        "job.yaml:11: future: months is 6 without per_month; add how often the job runs in a month, such as per_month: 30.",
    ),
    "no future use": (GOOD + "future: {}", "job.yaml:11: future: it says nothing; write {runs: 100}, or"),
    "a negative future use": (
        GOOD + "future: {runs: -1}",
        "job.yaml:11: future.runs: got -1; it should be greater than 0.",
    ),
    "a future use of nothing": (GOOD + "future: {runs: 0}", "job.yaml:11: future.runs: got 0; it should be greater"),
    "an undefined future use": (
        GOOD + "future: {runs: .nan}",
        "job.yaml:11: future.runs: got nan; expected a finite number.",
    ),
    "an endless future use": (
        GOOD + "future: {runs: .inf}",
        "job.yaml:11: future.runs: got inf; expected a finite number.",
    ),
    "a future use in words": (
        GOOD + "future: {runs: '100'}",
        "job.yaml:11: future.runs: got '100'; expected a number.",
    ),
    "a misspelt future use": (
        GOOD + "future: {run: 100}",
        "job.yaml:11: future.run: there is no field 'run'; did you mean 'runs'?",
    ),
    "a missing folder": (GOOD + "workdir: nowhere/at/all", "job.yaml:11: workdir: the folder "),
    "cpus below zero": (GOOD + "resources: {cpus: 0}", "job.yaml:11: resources.cpus: got 0; give an amount above 0"),
    "cpus over unknown columns": (GOOD + "resources: {cpus: cores}", "job.yaml:11: resources.cpus: "),
    "a map without values": (
        GOOD + "derived: {ram: {map: threads}}",
        "job.yaml:11: derived.ram: map needs the field 'values'; add it.",
    ),
    "a map with a hole": (
        GOOD + "derived: {ram: {map: threads, values: {1: 2, 2: 4}}}",
        "job.yaml:11: derived.ram: Mapped column 'ram' has no value for 4",
    ),
    "a join without a file": (
        GOOD + "derived: {m: {join: threads, table: no.csv}}",
        "job.yaml:11: derived.m: the table ",
    ),
    "a budget below one useful run": (
        changed("cost: 1 USD", "cost: 0.0000001 USD"),
        "budget: $0.0000001 pays for no useful run: 1s of the cheapest configuration and a grace period of 10s costs $",
    ),
    "a field twice": (GOOD + "name: again", "job.yaml:11: the field 'name' was given on line 2 already"),
    "not yaml": (GOOD + "a: [1, 2", "invalid YAML"),
    "a list": ("- a\n- b", "job.yaml:1: the document is a list"),
    "an empty file": ("", "job.yaml: the file is empty"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_command_line_prints_one_line_and_exits_with_2(case, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(CASES[case][0], encoding="utf-8")
    for command in (["check", "job.yaml"], ["run", "job.yaml", "-y"]):
        monkeypatch.setattr(sys, "argv", ["lynceus", *command])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert ended.value.code == 2
        assert (out, err.count("\n")) == ("", 1)
        assert CASES[case][1].removeprefix("job.yaml") in err
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"], "no file was written"


def test_the_valid_job_file_is_accepted() -> None:
    prepared = prepare(Job.parse(GOOD))
    assert len(prepared.problem.space) == 27
    assert prepared.parallel == 2


@pytest.mark.parametrize("case", CASES)
def test_the_error_is_one_sentence_with_position_and_fix(case: str) -> None:
    text, expected = CASES[case]
    with pytest.raises(InputError) as caught:
        prepare(Job.parse(text))
    message = str(caught.value)
    assert expected in message
    assert message.startswith("job.yaml")
    assert "\n" not in message
    assert "hunter2" not in message


def test_an_invalid_option_is_not_reported_as_an_error_of_the_file(tmp_path) -> None:
    with pytest.raises(InputError, match=r"^--policy: there is no 'bayes'"):
        prepare(Job.parse(GOOD, tmp_path), "bayes")
