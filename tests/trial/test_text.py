from hypothesis import given
from hypothesis import strategies as st

from lynceus.trial.text import clean_line, clean_name, clean_text

ANY_TEXT = st.text(st.characters(exclude_categories=()))
UNSAFE = ["\x00", "\x1b", "\x07", "\x7f", "\x9b", "\ud800", "\udfff", "\u202e", "\u2066", "\u2028", "\r"]


@given(ANY_TEXT)
def test_clean_text_can_be_stored_and_shown_anywhere(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert not [one for one in UNSAFE if one in cleaned]
    assert all(one.isprintable() or one in "\n\t" or ord(one) > 0x9F for one in cleaned)
    assert clean_text(cleaned) == cleaned


@given(ANY_TEXT)
def test_a_clean_line_is_one_bounded_line(text: str) -> None:
    line = clean_line(text, longest=20)
    assert len(line) <= 20
    assert "\n" not in line
    assert len(line.splitlines()) <= 1
    assert clean_line(line, longest=20) == line


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=99))
def test_ordinary_names_stay_as_they_are(text: str) -> None:
    assert clean_name(text) == text


def test_every_unsafe_character_is_replaced() -> None:
    for one in UNSAFE:
        assert clean_text(f"a{one}b") == "a\ufffdb"
