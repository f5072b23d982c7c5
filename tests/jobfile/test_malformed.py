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
    "run missing": (
        changed('run: [sort, "--parallel=${threads}", data.txt]\n', ""),
        "run: the field 'run' is missing; add it.",
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
    "notify": (GOOD + "notify: [me]", "job.yaml:11: notify: got a list; expected a mapping of fields."),
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
    "an invalid regular expression": (
        GOOD + "metrics: {a: '(a'}",
        "job.yaml:11: metrics.a: '(a' is not a valid regular expression",
    ),
    "a baseline outside": (
        GOOD + "baseline: {threads: 3, level: 1}",
        "job.yaml:11: baseline: The parameter 'threads' cannot be 3",
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
