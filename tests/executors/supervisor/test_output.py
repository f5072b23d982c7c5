import base64
import json
import os
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.supervisor.masking import MASK, Secrets
from lynceus.executors.supervisor.output import Output, read_output

chunks = st.lists(st.binary(max_size=40), max_size=20)


def written(folder: Path, pieces: list[bytes], max_bytes: int, secrets: list[bytes] | None = None) -> bytes:
    path = folder / "stream"
    path.unlink(missing_ok=True)
    output = Output(str(path), max_bytes, Secrets(secrets or []))
    for piece in pieces:
        output.write(piece)
    output.close()
    assert [one.name for one in folder.iterdir()] == ["stream"]
    return path.read_bytes()


@given(pieces=chunks, max_bytes=st.integers(1, 200))
def test_beginning_and_end_are_kept_with_the_size_of_the_gap(
    tmp_path_factory: object, pieces: list[bytes], max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("output")  # type: ignore[attr-defined]
    whole = b"".join(pieces)
    half = max(max_bytes // 2, 1)
    found = written(folder, pieces, max_bytes)
    if len(whole) <= 2 * half:
        assert found == whole
    else:
        gap = b"\n[... %d bytes left out ...]\n" % (len(whole) - 2 * half)
        assert found == whole[:half] + gap + whole[-half:]


@given(
    parts=st.lists(st.integers(1, 8), min_size=1, max_size=8), before=st.binary(max_size=9), after=st.binary(max_size=9)
)
def test_a_secret_is_masked_even_if_it_arrives_in_pieces(
    tmp_path_factory: object, parts: list[int], before: bytes, after: bytes
) -> None:
    folder = tmp_path_factory.mktemp("output")  # type: ignore[attr-defined]
    secret = b"sesame-open"
    whole = before + secret + after
    pieces, position = [], 0
    for size in [*parts, len(whole)]:
        pieces.append(whole[position : position + size])
        position += size
    found = written(folder, pieces, 10_000, [secret, b"abc"])  # secrets of less than six letters are not masked
    assert found == whole.replace(secret, MASK)


def test_output_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = str(tmp_path / "stream")
    output = Output(path, 20)
    output.write(b"0123456789")
    assert read_output(path) == b"0123456789"
    output.write(b"abcdefghijklmno")
    output.flush()
    assert read_output(path).startswith(b"0123456789\n[")
    assert read_output(path).endswith(b"abcdefghijklmno")
    output.close()
    assert read_output(path) == b"0123456789\n[... 5 bytes left out ...]\nfghijklmno"


PEM = b"-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\nab\n-----END KEY-----\n"


@pytest.mark.parametrize(
    "shown",
    [
        b"MIIEvQIBADANBg",
        b"x kqhkiG9w0BAQEF y",
        json.dumps(PEM.decode()).encode(),
        urllib.parse.quote(PEM).encode(),
        urllib.parse.quote_plus(PEM).encode(),
        base64.b64encode(PEM),
        base64.b64encode(b"u:" + PEM + b"."),
        base64.urlsafe_b64encode(b"user:kqhkiG9w0BAQEF"),
    ],
)
def test_every_line_and_the_usual_encodings_of_a_secret_are_masked(tmp_path: Path, shown: bytes) -> None:
    pieces = [b"see: " + shown[:7], shown[7:], b" end"]
    found = written(tmp_path, pieces, 100_000, [PEM])
    assert MASK in found
    assert (found[:5], found[-4:]) == (b"see: ", b" end")
    for part in (b"MIIEvQIBADANBg", b"kqhkiG9w0BAQEF", b"TUlJRXZRSUJB", b"a3Foa2lHOXcw"):
        assert part not in found


@pytest.mark.parametrize("safe", ["", "/"])
@pytest.mark.parametrize("quote", [urllib.parse.quote, urllib.parse.quote_plus])
def test_a_secret_in_an_address_is_masked(tmp_path: Path, quote: Callable[..., str], safe: str) -> None:
    """Some programs keep the slash, and forms write a plus for a space."""
    secret = b"a/b c@d:e+f%g"
    found = written(tmp_path, [b"to https://me:", quote(secret, safe=safe).encode(), b"@host"], 10_000, [secret])
    assert found == b"to https://me:" + MASK + b"@host"


@given(data=st.lists(st.sampled_from([b"ab", b"abc-abc", b"abc-abc-abd", b"-", b"abd-x", b"abd-xyz"]), max_size=12))
def test_secrets_that_overlap_leave_nothing(tmp_path_factory: object, data: list[bytes]) -> None:
    """What is written in pieces is masked like the whole."""
    folder = tmp_path_factory.mktemp("output")  # type: ignore[attr-defined]
    secrets = [b"abc-abc", b"abc-abc-abd", b"abd-xyz"]
    found = written(folder, data, 10_000, secrets)
    assert [one for one in secrets if one in found] == []
    assert found == Secrets(secrets).masked(b"".join(data))


def test_a_pipe_or_a_link_in_the_place_of_a_file_does_not_block_the_output(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    output = Output(str(path), 10)
    os.mkfifo(tmp_path / "stream.tail")
    output.write(b"0123456789")
    output.close()
    assert output.problem.startswith("its output could not be saved: ")
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / "stream.tail").symlink_to(tmp_path / "precious")
    output = Output(str(path), 10)
    output.write(b"0123456789")
    output.close()
    assert (tmp_path / "precious").read_bytes() == b"mine"
