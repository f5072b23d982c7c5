"""The reader of reports meets every shape of bytes; ten minutes of it with `-m slow`."""

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from attack.campaign import minutes
from attack.report_fuzz import check_report, expressions, pieces, reports


@given(lines=reports, sizes=pieces, marked=st.booleans(), which=expressions)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_report_of_any_shape(
    tmp_path: Path, lines: list[tuple[bytes, bytes]], sizes: list[int], marked: bool, which: list[str]
) -> None:
    check_report(tmp_path, lines, sizes, marked=marked, expressions=which)


@pytest.mark.slow
def test_ten_minutes_of_reports(capsys: pytest.CaptureFixture[str]) -> None:
    until, examples, number = time.monotonic() + 60 * minutes(), 0, 0
    with tempfile.TemporaryDirectory() as folder:

        @given(lines=reports, sizes=pieces, marked=st.booleans(), which=expressions)
        @settings(max_examples=400, derandomize=False, database=None)
        def check(lines: list[tuple[bytes, bytes]], sizes: list[int], marked: bool, which: list[str]) -> None:
            nonlocal examples
            examples += 1
            check_report(Path(folder), lines, sizes, marked=marked, expressions=which)

        while time.monotonic() < until:
            with capsys.disabled():
                print(f"reports: seed {number}, {examples} examples so far")
            seed(number)(check)()
            number += 1
