import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.supervisor.reports import Reports

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.dictionaries(st.text(max_size=5), numbers, max_size=3), max_size=6), st.integers(1, 30))
def test_marked_lines_are_read_in_pieces_of_any_size(lines: list[dict[str, float]], size: int) -> None:
    data = b"".join(b"noise\n::lynceus " + json.dumps(line).encode() + b"\n" for line in lines)
    reports = Reports("/no/such/file", {})
    for start in range(0, len(data), size):
        reports.add_output("stdout", data[start : start + size], float(start))
    reports.finish(99.0)
    expected: dict[str, float] = {}
    for line in lines:
        expected |= line
    expected.pop("progress", None)
    assert reports.metrics == expected
    assert reports.problem == ""


@given(st.binary(max_size=300))
def test_no_output_of_a_job_is_fatal(data: bytes) -> None:
    reports = Reports("/no/such/file", {"x": r"(\S+)"})
    for prefix in (b"", b"::lynceus ", b"\n::lynceus {"):
        reports.add_output("stdout", prefix + data, 0.0)
    reports.finish(1.0)


def test_a_file_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "result"
    reports = Reports(str(path), {})
    reports.read_file(0.0)
    path.write_text('{"progress": 0.1}\n{"prog')
    reports.read_file(1.0)
    with path.open("a") as file:
        file.write('ress": 0.2}\n{"loss": 3}')
    reports.read_file(2.0)
    assert reports.trace == [(1.0, 0.1), (2.0, 0.2)]
    reports.finish(3.0)
    assert reports.metrics == {"loss": 3.0}


def test_long_traces_are_thinned_out() -> None:
    reports = Reports("/no/such/file", {})
    for moment in range(20_000):
        reports.add_output("stdout", b'::lynceus {"progress": %d}\n' % moment, float(moment))
    assert len(reports.trace) <= 4096
    assert (reports.trace[0], reports.trace[-1][0] > 19_000) == ((0.0, 0.0), True)
