import contextlib
import json
import math
import os
import re
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.supervisor.masking import Secrets
from lynceus.executors.supervisor.output import Output
from lynceus.executors.supervisor.reports import Reports
from lynceus.trial.text import clean_name

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
        expected |= {clean_name(name): value for name, value in line.items()}
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


def read(*lines: str, patterns: dict[str, str] | None = None, secrets: tuple[bytes, ...] = ()) -> Reports:
    reports = Reports("/no/such/file", patterns or {}, Secrets(secrets))
    for line in lines:
        reports.add_output("stdout", line.encode("utf-8", "surrogatepass") + b"\n", 0.0)
    reports.finish(1.0)
    return reports


@pytest.mark.parametrize(
    ("report", "why"),
    [
        ('{"x": 1, "x": 2}', "the same name twice in one JSON object"),
        ('{"x": %s}' % ("9" * 400), "x is '99999"),
        ('{"x": %s}' % ("9" * 5000), "not a JSON object"),
        ('{"x": NaN}', "x is 'nan', not a finite number"),
        ('{"x": -Infinity}', "x is '-inf', not a finite number"),
        ('{"x": {"y": 1}}', "x is several values, not a finite number"),
        ('{"x": [1]}', "x is several values, not a finite number"),
        ('{"x": null}', "x is 'None', not a finite number"),
        ("[" * 60_000, "not a JSON object"),
        ('"\\ud800"', "not a JSON object"),
    ],
)
def test_reports_of_odd_shapes_are_ignored_and_noted(report: str, why: str) -> None:
    reports = read("::lynceus " + report, '::lynceus {"y": 3}')
    assert reports.metrics == {"y": 3.0}
    assert why in reports.problem
    assert len(reports.problem) < 300


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "\x1b[2J", "two\nlines", "x" * 5000, "\u202egnp"])
def test_names_of_metrics_are_one_line_of_plain_text(name: str) -> None:
    reports = read("::lynceus " + json.dumps({name: 1}), "::lynceus " + json.dumps({name: "\x1b\x00\ud800"}))
    (found,) = reports.metrics
    for text in (found, reports.problem):
        assert text.encode().decode().isprintable()
    assert len(found) <= 100


def test_the_number_of_metrics_is_limited_but_not_those_of_the_job_file() -> None:
    names = [json.dumps({f"m{number}": number}) for number in range(3000)]
    reports = read(
        *("::lynceus " + name for name in names), "f1=0.5", '::lynceus {"m0": 7}', patterns={"f1": "f1=(.*)"}
    )
    assert len(reports.metrics) == 1001
    assert (reports.metrics["f1"], reports.metrics["m0"]) == (0.5, 7.0)
    assert reports.problem == "only the first 1000 metrics were kept"


def test_secrets_are_masked_before_anything_is_quoted() -> None:
    secret = "hunter2-and-more"
    for line in (f"garbage {secret}", "x" * 70 + secret, json.dumps({"x": secret}), json.dumps({secret: 1, "y": "z"})):
        reports = read("::lynceus " + line, secrets=(secret.encode(),))
        assert reports.problem
        assert "hunter2" not in reports.problem + "".join(reports.metrics)


def test_an_expression_that_takes_too_long_is_given_up_and_the_others_go_on() -> None:
    slow, quick = r"^((?:a+)+)$", r"x=(\d)"
    reports = read("a" * 40 + "!", "x=3", "a" * 40 + "!", "x=4", patterns={"slow": slow, "x": quick})
    assert reports.metrics == {"x": 4.0}
    assert reports.problem == "the expression of slow was given up, because it took too long on some output"


def test_a_group_that_did_not_take_part_in_the_match_is_no_number() -> None:
    assert read("y", patterns={"x": "(x)?y"}).problem == "one report was ignored (x is '', not a finite number)"


@pytest.mark.parametrize("kind", ["fifo", "directory", "link", "endless link", "socket", "device"])
def test_only_a_regular_file_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "result"
    (tmp_path / "other").write_text('{"x": 1}\n')
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(tmp_path / "other")
    elif kind == "endless link":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    reports = Reports("/dev/zero" if kind == "device" else str(path), {})
    reports.read_file(0.0)
    reports.finish(1.0)
    assert reports.metrics == {}
    assert reports.problem.startswith("reports were ignored (")


def test_of_very_many_reports_the_last_are_read(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with path.open("w") as file:
        for number in range(400_000):
            file.write(json.dumps({"x": number}) + "\n")
    reports = Reports(str(path), {})
    reports.read_file(0.0)
    assert 0 < reports.metrics["x"] < 399_999  # a moment is not enough for all of them
    reports.finish(1.0)
    assert reports.metrics == {"x": 399_999.0}
    assert "bytes of reports were left out, because there were too many" in reports.problem


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text('{"x": 1}\n{"y": 1' + " " * 300_000 + '}\n{"z": 2}\n')
    reports = Reports(str(path), {})
    reports.finish(1.0)
    assert reports.metrics == {"x": 1.0, "z": 2.0}
    assert reports.problem == "one report was ignored (a line of more than 64 KiB)"


def test_a_file_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "result"
    reports = Reports(str(path), {})
    path.write_text('{"x": 1, "y": 1}\n')
    reports.read_file(0.0)
    path.write_text('{"x": 2}\n')
    reports.finish(1.0)
    assert reports.metrics == {"x": 2.0, "y": 1.0}


EXPRESSIONS = (
    r"accuracy=([0-9.]+)", r"^loss: (\S+)$", r"a+b*c?(\d)xyz", r"([0-9]+) seconds", r"[abc]def(\d*)", r"\[(\d+)\] done", r"x{2}yz(\d)",
    r"(abc)?d(e)", r"naïve (\d)", r"q(\d+)\.txt", r"a.b.c([0-9])", r"(?i)loss=(\d)", r"aaa|bbb(\d)", r"(\d+)", r"abc*(\d)", r"[]x]yyy(\d)",
)  # fmt: skip
words = st.lists(
    st.sampled_from(["accuracy=", "loss: ", "1", ".5", "abc", "def", "xyz", " seconds", "[", "]", " done", "xx", "yz", "d", "e", "naïve ",
                     "q",
                     ".txt",                      "LOSS=", "bbb", "a", "b", "c", "yyy", "ab", "nan", "\r"]),
    max_size=6,
).map("".join)  # fmt: skip


@given(st.sampled_from(EXPRESSIONS), st.lists(words, max_size=8), st.integers(1, 60))
def test_expressions_find_what_they_find_line_by_line(expression: str, lines: list[str], size: int) -> None:
    if re.compile(expression).groups != 1:
        expression = f"(?:{expression})".replace("(abc)?", "(?:abc)?")
    data = "".join(f"{line}\n" for line in lines).encode()
    reports = Reports("/no/such/file", {"x": expression, "progress": expression})
    for start in range(0, len(data), size):
        reports.add_output("stdout", data[start : start + size], 0.0)
    reports.finish(1.0)
    found = [re.search(expression.encode(), line.encode().rstrip(b"\r")) for line in lines]
    values = []
    for match in found:
        with contextlib.suppress(ValueError):
            number = float((match.group(1) or b"").decode()) if match is not None else math.nan
            values += [number] if math.isfinite(number) else []
    assert reports.metrics == ({"x": values[-1]} if values else {})
    assert [value for _, value in reports.trace] == values


@pytest.mark.parametrize("line", [b"accuracy=0.25\n", b"step 17 of 90000\n"])
def test_megabytes_of_lines_take_little_time(line: bytes, tmp_path: Path) -> None:
    """In processor time: a fiftieth of a second, where line by line it took one or several seconds."""
    piece = line * (65536 // len(line))
    reports = Reports("/no/such/file", {"accuracy": r"accuracy=([0-9.]+)"})
    output = Output(str(tmp_path / "x"), 1 << 20)
    began = time.process_time()
    for _ in range(400):
        reports.add_output("stdout", piece, 0.0)
        output.write(piece)
    spent = time.process_time() - began
    output.close()
    assert spent < 0.4, f"26 MB took {spent:.3f} s"
    assert (tmp_path / "x").stat().st_size < 1 << 21
