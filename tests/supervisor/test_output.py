from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lynceus.supervisor.output import HIDDEN, Output, read_output

chunks = st.lists(st.binary(max_size=40), max_size=20)


def kept(folder: Path, pieces: list[bytes], most: int, secrets: list[bytes] | None = None) -> bytes:
    path = folder / "stream"
    path.unlink(missing_ok=True)
    output = Output(str(path), most, secrets or [])
    for piece in pieces:
        output.write(piece)
    output.close()
    assert [one.name for one in folder.iterdir()] == ["stream"]
    return path.read_bytes()


@given(pieces=chunks, most=st.integers(1, 200))
def test_beginning_and_end_are_kept_and_the_gap_is_counted(
    tmp_path_factory: object, pieces: list[bytes], most: int
) -> None:
    folder = tmp_path_factory.mktemp("output")  # type: ignore[attr-defined]
    whole = b"".join(pieces)
    half = max(most // 2, 1)
    found = kept(folder, pieces, most)
    if len(whole) <= 2 * half:
        assert found == whole
    else:
        gap = b"\n[... %d bytes left out ...]\n" % (len(whole) - 2 * half)
        assert found == whole[:half] + gap + whole[-half:]


@given(
    parts=st.lists(st.integers(1, 8), min_size=1, max_size=8), before=st.binary(max_size=9), after=st.binary(max_size=9)
)
def test_a_secret_is_hidden_however_it_arrives(
    tmp_path_factory: object, parts: list[int], before: bytes, after: bytes
) -> None:
    folder = tmp_path_factory.mktemp("output")  # type: ignore[attr-defined]
    secret = b"sesame-open"
    whole = before + secret + after
    pieces, at = [], 0
    for size in [*parts, len(whole)]:
        pieces.append(whole[at : at + size])
        at += size
    found = kept(folder, pieces, 10_000, [secret, b"abc"])  # what is shorter than four letters is no secret
    assert found == whole.replace(secret, HIDDEN)


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
