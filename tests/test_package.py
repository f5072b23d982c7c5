"""The public face of the package: every promised name is there, documented, and costs nothing until it is used."""

import subprocess
import sys

import pytest

import lynceus


@pytest.mark.parametrize("name", lynceus.__all__)
def test_every_promised_name_is_there_and_documented(name: str) -> None:
    assert getattr(lynceus, name).__doc__
    assert name in dir(lynceus)


def test_homes_and_promises_agree() -> None:
    assert sorted(name for names in lynceus._HOMES.values() for name in names) == sorted(lynceus.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        lynceus.optimise  # noqa: B018


def test_a_job_that_reports_imports_no_numbers() -> None:
    code = "import sys, lynceus; lynceus.report(accuracy=0.5); print('numpy' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
