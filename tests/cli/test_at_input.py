"""`lynceus best --input`, `whatif --input` and `explain`: answers for inputs that never ran; and a job file whose input changes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from lynceus.storage.sql.storage import Storage

pytestmark = pytest.mark.usefixtures("here")

JOB = """\
name: grows
run: ["true"]
space: {nodes: [1, 2, 4, 8]}
price: 0.36 * nodes
constraints: ["runtime <= 20m"]
budget: 50 USD
input: {size: 100 GB}
"""


def test_a_size_that_never_ran_has_an_answer_with_how_sure_it_is(lynceus, here: Path) -> None:
    import lynceus as package

    space = package.Space.build([package.Ordinal("nodes", [1, 2, 4, 8])], price="0.36 * nodes")
    study = package.create_study(
        space=space, constraints=["runtime <= 20m"], study_name="grows", storage="sqlite:///lynceus.db", input="100 GB"
    )
    study.add_trials([({"nodes": nodes}, 60 + 900 / nodes, {}) for nodes in (1, 2, 4, 8)])
    study.add_trials([({"nodes": nodes}, 40 + 450 / nodes, {}) for nodes in (1, 2, 4, 8)], input="50 GB")
    code, out, err = lynceus("best", "grows", "--input", "200GB", "-o", "json")
    found = json.loads(out)
    low, high = found["runtime_interval_s"]
    assert (code, err) == (0, "")
    assert found["input"] == {"size": 200e9}
    assert low < 60 + 1800 / found["params"]["nodes"] < high
    assert found["probability"] > 0.8
    assert found["inputs_run"] == {"100 GB": 4, "50 GB": 4}
    assert "no run has read more than 100 GB" in found["check_again"]
    code, out, _ = lynceus("best", "grows", "--input", "2TB")
    assert code == 3
    assert "check it with a run on 2 TB" in out
    assert "none yet; likeliest: nodes=" in out
    printed = lynceus("whatif", "grows", "--input", "2TB", "--input", "50GB")[1]
    assert printed.count("none yet; likeliest: nodes=") == 1
    answer = json.loads(lynceus("best", "grows", "-o", "json")[1])
    assert answer["check_again"].startswith(("check it again at", "it should hold up to"))
    inputs = json.loads(lynceus("whatif", "grows", "--input", "150GB", "--input", "size=300GB", "-o", "json")[1])[
        "inputs"
    ]
    assert [one["input_text"] for one in inputs] == ["150 GB", "300 GB"]
    assert inputs[0]["runtime_s"] < inputs[1]["runtime_s"] or inputs[0]["params"] != inputs[1]["params"]
    curve = json.loads(lynceus("explain", "grows", "-o", "json")[1])["over_input_size"]
    assert [one["input"]["size"] for one in curve] == sorted(one["input"]["size"] for one in curve)
    assert "over the input" in lynceus("explain", "grows")[1]
    code, out, _ = lynceus("export", "grows", "--to", "csv", "--file", "-")
    rows = list(csv.DictReader(out.splitlines())) if out else []
    assert not rows or {row["input_size"] for row in rows} == {"100000000000.0", "50000000000.0"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("12 Gb", "--input: size is '12 Gb'; give an amount such as 120 GB"),
        ("files=3", "--input: 'files' is not a part of the input, which is 100 GB"),
        ("-1", "--input: size is '-1'"),
    ],
)
def test_an_input_that_makes_no_sense_is_one_sentence(lynceus, asked: str, said: str) -> None:
    import lynceus as package

    space = package.Space.build([package.Ordinal("nodes", [1, 2])], price="1")
    package.create_study(space=space, study_name="s", storage="sqlite:///lynceus.db", input="100 GB")
    code, _, err = lynceus("best", "s", "--input", asked)
    assert (code, said in err, err.count("\n")) == (2, True, 1), err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("16", "its unit is missing; write '16 MB'"),
        ("16 B", "16 B is more than 1,000 times smaller than what ran (50 GB to 100 GB)"),
        ("101 TB", "101 TB is more than 1,000 times larger than what ran (50 GB to 100 GB)"),
    ],
)
def test_a_size_that_is_probably_in_another_unit_has_no_answer(lynceus, asked: str, said: str) -> None:
    import lynceus as package

    space = package.Space.build([package.Ordinal("nodes", [1, 2])], price="1")
    study = package.create_study(space=space, study_name="s", storage="sqlite:///lynceus.db", input="100 GB")
    study.add_trials([({"nodes": nodes}, 60 / nodes, {}) for nodes in (1, 2)])
    study.add_trials([({"nodes": nodes}, 30 / nodes, {}) for nodes in (1, 2)], input="50 GB")
    for command in ("best", "whatif"):
        code, _, err = lynceus(command, "s", "--input", asked)
        assert (code, said in err, err.count("\n")) == (2, True, 1), err
    with pytest.raises(package.LynceusError, match=r"(the|its) unit"):
        package.best_for_input(study, asked)


def test_a_study_that_does_not_say_what_it_reads_cannot_tell(lynceus) -> None:
    import lynceus as package

    space = package.Space.build([package.Ordinal("nodes", [1, 2])], price="1")
    package.create_study(space=space, study_name="s", storage="sqlite:///lynceus.db")
    code, _, err = lynceus("whatif", "s", "--input", "100GB")
    assert code == 2
    assert "does not say what its runs read; give it in the job file, as in input: {size: 120 GB}" in err


def test_an_edited_input_is_searched_with_the_money_left(lynceus, here: Path) -> None:
    job = JOB.replace('run: ["true"]', "run: 'true'").replace("price: 0.36", "price: 36").replace("50 USD", "5 USD")
    (here / "grows.yaml").write_text(job)
    assert lynceus("run", "grows.yaml", "-y")[0] == 0
    (here / "grows.yaml").write_text(job.replace("100 GB", "400 GB"))
    code, _, err = lynceus("run", "grows.yaml", "-y")
    assert code == 0
    assert "trials from now on follow the changed file (input.size)" in err
    with Storage("sqlite:///lynceus.db") as storage:
        read = [str(trial.order.input) for trial in storage.trials("grows")]
    assert read[0] == "100 GB"
    assert read[-1] == "400 GB"
    assert lynceus("best", "grows.yaml")[0] == 0


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("120 GB", "input: got '120 GB'; write {size: 120 GB}"),
        ("{size: 3 Gb}", "input: size is '3 Gb'"),
        ("{}", "input: got '{}'"),
    ],
)
def test_mistakes_in_the_section(lynceus, here: Path, written: str, said: str) -> None:
    (here / "grows.yaml").write_text(JOB.replace("{size: 100 GB}", written))
    code, _, err = lynceus("check", "grows.yaml")
    assert (code, said in err) == (2, True), err


def test_growing_inputs_doubt_the_limit_that_is_in_doubt(lynceus) -> None:
    import lynceus as package

    space = package.Space.build([package.Ordinal("nodes", [1, 2, 4, 8])], price="0.36 * nodes")
    study = package.create_study(
        space=space,
        constraints=["runtime <= 20h", "ratio <= 0.33"],
        study_name="grows",
        storage="sqlite:///lynceus.db",
        input="1 GB",
    )
    study.add_trials([({"nodes": nodes}, 60 + 900 / nodes, {"ratio": 0.3299}) for nodes in (1, 2, 4, 8)])
    said = json.loads(lynceus("best", "grows", "-o", "json")[1])["check_again"]
    assert "it keeps ratio <= 0.33 with a chance of" in said
    assert "deadline" not in said


def test_one_size_does_not_tell_how_a_metric_grows_and_a_second_one_does(lynceus) -> None:
    import lynceus as package

    space = package.Space.build([package.Ordinal("level", [1, 2, 3, 4])], price="1")
    study = package.create_study(
        space=space, constraints=["bytes <= 60000000"], study_name="s", storage="sqlite:///lynceus.db", input="100 MB"
    )

    def runs(share: float) -> list[tuple[dict[str, int], float, dict[str, float]]]:
        return [
            ({"level": one}, share * (1 + one), {"bytes": share * 1e8 * (0.6 - 0.05 * one)}) for one in (1, 2, 3, 4)
        ]

    study.add_trials(runs(1.0))
    said = "all runs read 100 MB, so how bytes grows with the input is a guess"
    assert said in " ".join(lynceus("best", "s", "--input", "500 MB")[1].split())
    assert json.loads(lynceus("best", "s", "--input", "500 MB", "-o", "json")[1])["probability"] > 0.3
    assert said not in " ".join(lynceus("best", "s", "--input", "100 MB")[1].split())
    study.add_trials(runs(0.5), input="50 MB")
    assert said not in " ".join(lynceus("best", "s", "--input", "500 MB")[1].split())
    assert json.loads(lynceus("best", "s", "--input", "500 MB", "-o", "json")[1])["probability"] < 0.01
