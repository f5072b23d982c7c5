"""What a run reads, as users write it and as it is kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem.job_input import JobInput


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("120 GB", 120e9),
        ("120GB", 120e9),
        ("2 GiB", 2 * 2**30),
        ("1.5TB", 1.5e12),
        ("4096 B", 4096.0),
        ("40960", 40960.0),
        (4096, 4096.0),
    ],
)
def test_gb_is_a_thousand_million_bytes_and_gib_two_to_the_thirty(text: object, size: float) -> None:
    assert JobInput.read(text).numbers == {"size": size}
    assert JobInput.read({"size": text}) == JobInput.read(text)


def test_several_numbers_and_names() -> None:
    given = JobInput.read("size=240GB, files=8000, video=talk.mp4")
    assert given.numbers == {"size": 240e9, "files": 8000.0}
    assert given.texts == (("video", "talk.mp4"),)
    assert given == JobInput.read({"video": "talk.mp4", "files": 8000, "size": "240 GB"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("120 Gb", "size is '120 Gb'; give an amount such as 120 GB"),
        ("-3 GB", "size is '-3 GB'"),
        ("50", "size is '50', its unit is missing; write '50 MB', or '50 B' if it is bytes."),
        ("files=7,size=1.5", "size is '1.5', its unit is missing"),
        ("0", "size is '0'"),
        ("size=many", "size is 'many'"),
        ({}, "write {size: 120 GB}"),
        ([1], "write {size: 120 GB}"),
        (True, "write {size: 120 GB}"),
        ({"size": None}, "size is 'None'"),
        ({"rows per day": 3}, "'rows per day' is no name"),
        ({"rows": float("inf")}, "rows is 'inf'"),
        ({f"n{i}": i + 1 for i in range(20)}, "got 20 fields; give at most 16"),
    ],
)
def test_a_mistake_is_one_sentence(text: object, said: str) -> None:
    with pytest.raises(InputError) as error:
        JobInput.read(text, "--input")
    assert said in str(error.value)
    assert str(error.value).startswith("--input: ")
    assert "\n" not in str(error.value)


@given(st.dictionaries(st.sampled_from(["size", "rows", "files"]), st.floats(1e-3, 1e18), min_size=1))
def test_an_input_is_kept_as_json(numbers: dict[str, float]) -> None:
    one = JobInput.read(numbers)
    assert JobInput.of_record(json.loads(json.dumps(one.record()))) == one
    assert one.equals(one)


def test_inputs_that_differ_less_than_runs_do_are_the_same() -> None:
    one = JobInput.read("120 GB")
    assert one.equals(JobInput.read("121 GB"))
    assert not one.equals(JobInput.read("130 GB"))
    assert not one.equals(JobInput.read("size=120GB,files=3"))
    assert not JobInput.read("file=a").equals(JobInput.read("file=b"))


def test_a_size_in_bits_is_refused_with_the_reason() -> None:
    with pytest.raises(
        InputError, match=r"size is '50Mb'; give an amount such as 120 GB .*; a small b would mean bits\."
    ):
        JobInput.read({"size": "50Mb"})
