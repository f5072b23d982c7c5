"""The data fraction: which rows may be tested, which may be recommended, and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.problem.data_fraction import Answers, Fraction, Tested, configurations, row_shares, shares
from lynceus.problem.problem import Problem
from lynceus.replay.job import load_job
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space

SHARES = (0.1, 0.5, 1.0)
SPACE = Space.build([Categorical("vm", ("a", "b")), Ordinal("share", SHARES)], price=1.0)


@pytest.mark.parametrize(
    ("test", "answer", "testable", "answerable"),
    [
        ("all", "any", SHARES, SHARES),
        ("samples", "full", (0.1, 0.5), (1.0,)),
        ("full", "full", (1.0,), (1.0,)),
        ("all", "full", SHARES, (1.0,)),
    ],
)
def test_testable_and_answerable_rows(
    test: Tested, answer: Answers, testable: tuple[float, ...], answerable: tuple[float, ...]
) -> None:
    problem = Fraction("share", test, answer).apply(Problem(SPACE))
    for mask, wanted in ((problem.testable, testable), (problem.answerable, answerable)):
        allowed = np.ones(len(SPACE), dtype=bool) if mask is None else mask
        np.testing.assert_array_equal(allowed, np.isin(row_shares(problem), wanted))


def test_without_a_fraction_every_run_reads_all_data() -> None:
    np.testing.assert_array_equal(row_shares(Problem(SPACE)), np.ones(6))


def test_configurations_are_rows_that_differ_in_the_fraction_alone() -> None:
    number = configurations(SPACE, "share")
    for row in range(len(SPACE)):
        same = [other for other in range(len(SPACE)) if SPACE.point(other)["vm"] == SPACE.point(row)["vm"]]
        np.testing.assert_array_equal(np.flatnonzero(number == number[row]), same)
    assert len(set(configurations(SPACE, None).tolist())) == len(SPACE)
    alone = Space.build([Ordinal("share", SHARES)], price=1.0)
    assert configurations(alone, "share").tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0.0, 1.0), "fraction: share holds 0; a fraction of the data lies above 0 and up to 1."),
        ((25, 100), "fraction: share holds 25; a fraction of the data lies above 0 and up to 1; write 0.25 for 25 %."),
        ((-0.5, 1.0), "fraction: share holds -0.5; a fraction of the data lies above 0 and up to 1."),
        (("a", "b"), "fraction: share holds 'a'; a fraction of the data is a number such as 0.25."),
    ],
)
def test_invalid_fractions_are_errors(values: tuple[float, ...], message: str) -> None:
    space = Space.build([Ordinal("share", values)], price=1.0)
    with pytest.raises(InputError) as error:
        shares(space, "share")
    assert str(error.value) == message
    with pytest.raises(InputError):
        Problem(space, fraction="share")


def test_runs_on_all_data_must_exist_to_be_recommended() -> None:
    samples = Space.build([Ordinal("share", (0.1, 0.5))], price=1.0)
    with pytest.raises(InputError, match="no configuration has share = 1, so none runs on all data"):
        Fraction("share", "samples", "full").masks(samples)
    assert Fraction("share").masks(samples) == (None, None)
    whole = Space.build([Categorical("vm", ("a", "b")), Ordinal("share", (1.0,))], price=1.0)
    with pytest.raises(InputError, match="there are no samples to test; add values below 1"):
        Fraction("share", "samples", "full").masks(whole)


TABLE = "vm,share,time_s,usd,acc\na,0.5,5,1,0.7\na,1,9,1,0.8\nb,0.5,6,2,0.75\nb,1,11,2,0.9\n"
SPEC = "table: t.csv\nparameters: [vm, share]\nprice: usd\nmetrics: {accuracy: acc}\nobjective: maximize accuracy\n"


def _job(folder: Path, fraction: str, table: str = TABLE) -> Path:
    (folder / "t.csv").write_text(table)
    path = folder / "t.yaml"
    path.write_text(f"{SPEC}fraction: {fraction}\n")
    return path


def test_a_replay_table_declares_its_fraction(tmp_path: Path) -> None:
    job = load_job(_job(tmp_path, "{column: share, test: samples, answer: full}"))
    assert job.problem.space.point(job.optimum.row) == {"vm": "b", "share": 1}
    assert job.problem.testable is not None
    np.testing.assert_array_equal(job.problem.testable, row_shares(job.problem) < 1)
    short = load_job(_job(tmp_path, "share"))
    assert (short.problem.fraction, short.problem.testable, short.problem.answerable) == ("share", None, None)


@pytest.mark.parametrize(
    ("fraction", "table", "message"),
    [
        ("shar", TABLE, "t.yaml:6: fraction.column: 'shar' is not a parameter; did you mean 'share'?"),
        ("{column: share, answer: all}", TABLE, "t.yaml:6: fraction.answer: "),
        (
            "share",
            TABLE.replace("0.5", "50"),
            "t.yaml:6: fraction: share holds 50; a fraction of the data lies above 0",
        ),
        (
            "{column: share, answer: full}",
            TABLE.replace(",1,9", ",0.9,9").replace(",1,11", ",0.9,11"),
            "t.yaml:6: fraction: no configuration has share = 1",
        ),
    ],
)
def test_an_error_in_a_job_file_names_its_line(tmp_path: Path, fraction: str, table: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_job(_job(tmp_path, fraction, table))
    assert message in str(error.value)
