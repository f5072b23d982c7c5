import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lynceus.supervisor.readings import Readings

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.dictionaries(st.text(max_size=5), numbers, max_size=3), max_size=6), st.integers(1, 30))
def test_marked_lines_are_read_however_they_are_cut(reports: list[dict[str, float]], size: int) -> None:
    data = b"".join(b"noise\n::lynceus " + json.dumps(report).encode() + b"\n" for report in reports)
    readings = Readings("/no/such/file", {})
    for at in range(0, len(data), size):
        readings.output("stdout", data[at : at + size], float(at))
    readings.finish(99.0)
    expected: dict[str, float] = {}
    for report in reports:
        expected |= report
    expected.pop("progress", None)
    assert readings.metrics == expected
    assert readings.note == ""


@given(st.binary(max_size=300))
def test_nothing_that_a_job_says_is_fatal(data: bytes) -> None:
    readings = Readings("/no/such/file", {"x": r"(\S+)"})
    for prefix in (b"", b"::lynceus ", b"\n::lynceus {"):
        readings.output("stdout", prefix + data, 0.0)
    readings.finish(1.0)


def test_a_file_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "result"
    readings = Readings(str(path), {})
    readings.file(0.0)
    path.write_text('{"progress": 0.1}\n{"prog')
    readings.file(1.0)
    with path.open("a") as file:
        file.write('ress": 0.2}\n{"loss": 3}')
    readings.file(2.0)
    assert readings.trace == [(1.0, 0.1), (2.0, 0.2)]
    readings.finish(3.0)
    assert readings.metrics == {"loss": 3.0}


def test_progress_is_thinned_out_not_cut_off() -> None:
    readings = Readings("/no/such/file", {})
    for moment in range(20_000):
        readings.output("stdout", b'::lynceus {"progress": %d}\n' % moment, float(moment))
    assert len(readings.trace) <= 4096
    assert (readings.trace[0], readings.trace[-1][0] > 19_000) == ((0.0, 0.0), True)
