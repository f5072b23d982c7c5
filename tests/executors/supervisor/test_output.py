from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.supervisor.output import MASK, Output, read_output

chunks = st.lists(st.binary(max_size=40), max_size=20)


def written(folder: Path, pieces: list[bytes], max_bytes: int, secrets: list[bytes] | None = None) -> bytes:
    path = folder / "stream"
    path.unlink(missing_ok=True)
    output = Output(str(path), max_bytes, secrets or [])
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
    found = written(folder, pieces, 10_000, [secret, b"abc"])  # secrets of less than four letters are not masked
    assert found == whole.replace(secret, MASK)


def test_output_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = str(tmp_path / "stream")
    output = Output(path, 20)
    output.write(b"0123456789")
    assert read_output(path) == b"0123456789"
    output.write(b"abcdefghijklmno")
    assert read_output(path).startswith(b"0123456789\n[")
    assert read_output(path).endswith(b"abcdefghijklmno")
    output.close()
    assert read_output(path) == b"0123456789\n[... 5 bytes left out ...]\nfghijklmno"
