"""Every mistake in a document is one sentence that names the file, the line, the field and the fix."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.document import Document, Duration, Money, Section, read_document
from lynceus.errors import InputError


class Axis(Section):
    low: int
    step: int = 1
    scale: Literal["linear", "log"] = "linear"


class Job(Section):
    name: str
    space: dict[str, Axis]
    deadline: Duration | None = None
    budget: Money = 1.0
    tags: list[str] | dict[str, Axis | None] | None = None


GOOD = "name: mine\nspace:\n  nodes:\n    low: 2\ndeadline: 1h30m\nbudget: 25 USD\n"


def complaint(text: str) -> str:
    with pytest.raises(InputError) as caught:
        Document.parse(text, "job.yaml").check(Job)
    return str(caught.value)


def test_a_good_document_is_read(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(GOOD)
    job = read_document(path, Job)
    assert (job.name, job.space["nodes"].low, job.deadline, job.budget) == ("mine", 2, 5400.0, 25.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "nam: x\n", "job.yaml:7: nam: there is no field 'nam'; did you mean 'name'?"),
        (GOOD + "qqq: 1\n", "job.yaml:7: qqq: there is no field 'qqq'; known are name, space, deadline, budget, tags."),
        (
            "name: a\nspace:\n  nodes:\n    low: 1\n    stepp: 2\n",
            "job.yaml:5: space.nodes.stepp: there is no field 'stepp'; did you mean 'step'?",
        ),
        ("space: {n: {low: 1}}", "job.yaml:1: name: the field 'name' is missing; add it."),
        ("name: a\nspace:\n  n:\n    step: 1", "job.yaml:3: space.n.low: the field 'low' is missing; add it."),
        ("name: a\nspace:\n  n: {low: two}", "job.yaml:3: space.n.low: 'two' came, but a whole number is needed."),
        ("name: a\nspace:\n  n: {low: true}", "job.yaml:3: space.n.low: true came, but a whole number is needed."),
        ("name: 12\nspace: {}", "job.yaml:1: name: 12 came, but a text is needed."),
        ("name: a\nspace: [1]", "job.yaml:2: space: a list came, but a mapping is needed."),
        ("name: a\nspace:\n  n:\n", "job.yaml:3: space.n: nothing came, but a mapping of fields is needed."),
        ("name: a\nspace: {}\ntags: 3", "job.yaml:3: tags: 3 came, but a list or a mapping is needed."),
        ("name: a\nspace: {}\ntags: [a,\n 3]", "job.yaml:4: tags.1: 3 came, but a text is needed."),
        (
            "name: a\nspace: {}\ntags:\n  x: {low: 1,\n    sep: 2}",
            "job.yaml:5: tags.x.sep: there is no field 'sep'; did you mean 'step'?",
        ),
        (
            "name: a\nspace: {n: {low: 1, scale: lgo}}",
            "job.yaml:2: space.n.scale: 'lgo' came; did you mean 'log'?",
        ),
        (
            "name: a\nspace: {}\ndeadline: 10 parsecs",
            "job.yaml:3: deadline: the duration is '10 parsecs', of which '10 parsecs' is not understood: "
            "write numbers with d, h, m, s or ms, such as '1h30m'.",
        ),
        (
            "name: a\nspace: {}\nbudget: much",
            "job.yaml:3: budget: the amount is 'much', but dollars such as '25 USD', '$25' or 25 are needed.",
        ),
        ("name: a\nname: b", "job.yaml:2: the field 'name' was given on line 1 already; keep one of them."),
        ("", "job.yaml: the file is empty; a mapping of fields is needed, such as 'name: my-job'."),
        ("# nothing\n", "job.yaml: the file is empty; a mapping of fields is needed, such as 'name: my-job'."),
        ("- a\n- b", "job.yaml:1: the document is a list; a mapping of fields is needed, such as 'name: my-job'."),
        ("hello", "job.yaml:1: the document is a single value; a mapping of fields is needed, such as 'name: my-job'."),
        (
            "name: a\nspace:\n\tn: 1",
            "job.yaml:3: this is not YAML: a tab stands where YAML wants blanks; indent with blanks.",
        ),
        (
            "name: a\nspace:\n    n: {low: 1}\n  m: {low: 1}",
            "job.yaml:4: this is not YAML: the indentation differs from the lines before; begin fields of one section in the same column.",
        ),
        (
            "name: a\n  space: b",
            "job.yaml:2: this is not YAML: the indentation differs from the lines before; begin fields of one section in the same column.",
        ),
        (
            "name: echo now: then",
            "job.yaml:1: this is not YAML: a text that holds ': ' looks like a field; put quotes around it.",
        ),
        ("name: [a", "job.yaml:1: this is not YAML: expected ',' or ']', but got '<stream end>'."),
        (
            "name: !!python/object/apply:os.system ['true']",
            "job.yaml:1: name: a list came, but a text is needed.",
        ),
        (
            "name: !secret x",
            "job.yaml:1: the tag '!secret' is not known here; write plain texts and numbers.",
        ),
        ("[a, b]: 1", "job.yaml:1: a list or a mapping stands where the name of a field is needed."),
        (
            "name: &a [*a]",
            "job.yaml:1: values are nested too deeply; a document has at most 64 levels, and an alias may not contain itself.",
        ),
    ],
)
def test_mistakes_are_one_sentence_with_place_and_fix(text, message):
    assert complaint(text) == message


def test_nested_aliases_do_not_blow_up():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "use fewer aliases" in complaint("\n".join(lines))


def test_deep_nesting_is_refused():
    assert "nested too deeply" in complaint("name: " + "[" * 5000)


def test_files_that_are_no_documents(tmp_path):
    def said(path) -> str:
        with pytest.raises(InputError) as caught:
            read_document(path, Job)
        return str(caught.value).replace(str(tmp_path), "")

    (tmp_path / "latin.yaml").write_bytes("a: 1\nname: caf\u00e9".encode("latin-1"))
    (tmp_path / "huge.yaml").write_bytes(b"#" * (1 << 20) + b"\n")
    assert said(tmp_path / "none.yaml") == "/none.yaml: there is no such file; give the path of a YAML file."
    assert said(tmp_path / "latin.yaml") == "/latin.yaml:2: the file is not UTF-8 text; save it as UTF-8."
    assert said(tmp_path / "huge.yaml") == "/huge.yaml: the file has 1,048,577 bytes; a document has at most 1,048,576."
    assert said(tmp_path).endswith("this is a folder; give the path of a YAML file.")


@pytest.mark.parametrize(
    ("text", "value"),
    [("no", "no"), ("on", "on"), ("1e-3", 0.001), ("12:30", "12:30"), ("2024-01-01", "2024-01-01"), ("010", 10),
     ("0x1f", 31), ("~", None), ("true", True), (".5", 0.5), ("-.inf", float("-inf")), ("1_000", "1_000"), ("'5'", "5")],
)  # fmt: skip
def test_words_are_read_as_yaml_1_2_reads_them(text, value):
    read = Document.parse(f"x: {text}").tree.value["x"]
    assert read == value
    assert type(read) is type(value)


@given(st.text(max_size=12) | st.text("{}[]:,-&*!|>'\"#% \n\tab1.", max_size=12))
def test_any_odd_text_is_refused_with_an_input_error(text):
    with pytest.raises(InputError, match=r"^any\.yaml"):  # no text this short has both required fields
        Document.parse(text, "any.yaml").check(Job)
