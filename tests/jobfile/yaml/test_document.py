"""Every mistake in a document is one sentence that names the file, the line, the field and the fix."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.jobfile.yaml.document import Document, read_document
from lynceus.problem.fields import Duration, Money, Section


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
        (
            'name: a\nspace:\n  n: {low: "\\ud800"}',
            r"job.yaml:3: '\ud800' has a character that cannot be stored (NUL, or half a surrogate pair); remove it.",
        ),
        (
            'name: a\n"\\0": 1',
            r"job.yaml:2: '\x00' has a character that cannot be stored (NUL, or half a surrogate pair); remove it.",
        ),
        (GOOD + "nam: x\n", "job.yaml:7: nam: there is no field 'nam'; did you mean 'name'?"),
        (GOOD + "qqq: 1\n", "job.yaml:7: qqq: there is no field 'qqq'; known are name, space, deadline, budget, tags."),
        (
            "name: a\nspace:\n  nodes:\n    low: 1\n    stepp: 2\n",
            "job.yaml:5: space.nodes.stepp: there is no field 'stepp'; did you mean 'step'?",
        ),
        ("space: {n: {low: 1}}", "job.yaml:1: name: the field 'name' is missing; add it."),
        ("name: a\nspace:\n  n:\n    step: 1", "job.yaml:3: space.n.low: the field 'low' is missing; add it."),
        ("name: a\nspace:\n  n: {low: two}", "job.yaml:3: space.n.low: got 'two'; expected a whole number."),
        ("name: a\nspace:\n  n: {low: true}", "job.yaml:3: space.n.low: got true; expected a whole number."),
        ("name: 12\nspace: {}", "job.yaml:1: name: got 12; expected a string."),
        ("name: a\nspace: [1]", "job.yaml:2: space: got a list; expected a mapping."),
        ("name: a\nspace:\n  n:\n", "job.yaml:3: space.n: got no value; expected a mapping of fields."),
        ("name: a\nspace: {}\ntags: 3", "job.yaml:3: tags: got 3; expected a list or a mapping."),
        ("name: a\nspace: {}\ntags: [a,\n 3]", "job.yaml:4: tags.1: got 3; expected a string."),
        (
            "name: a\nspace: {}\ntags:\n  x: {low: 1,\n    sep: 2}",
            "job.yaml:5: tags.x.sep: there is no field 'sep'; did you mean 'step'?",
        ),
        (
            "name: a\nspace: {n: {low: 1, scale: lgo}}",
            "job.yaml:2: space.n.scale: got 'lgo'; did you mean 'log'?",
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
        ("", "job.yaml: the file is empty; expected a mapping of fields, such as 'name: my-job'."),
        ("# no fields\n", "job.yaml: the file is empty; expected a mapping of fields, such as 'name: my-job'."),
        ("- a\n- b", "job.yaml:1: the document is a list; expected a mapping of fields, such as 'name: my-job'."),
        ("hello", "job.yaml:1: the document is a single value; expected a mapping of fields, such as 'name: my-job'."),
        (
            "name: a\nspace:\n\tn: 1",
            "job.yaml:3: invalid YAML: a tab is used for indentation; indent with spaces.",
        ),
        (
            "name: a\nspace:\n    n: {low: 1}\n  m: {low: 1}",
            "job.yaml:4: invalid YAML: the indentation differs from the lines before; align all fields of a section.",
        ),
        (
            "name: a\nspace:\n  m [1, 2]\n  n: [3]",
            "job.yaml:4: invalid YAML: the line before has no colon; write 'm: …'.",
        ),
        (
            "name: a\n  space: b",
            "job.yaml:2: invalid YAML: the indentation differs from the lines before; align all fields of a section.",
        ),
        (
            "name: echo now: then",
            "job.yaml:1: invalid YAML: a string that contains ': ' looks like a field; put quotes around it.",
        ),
        (
            "name: a\nrun: [a, b\nseed: 1",
            "job.yaml:3: invalid YAML: the list that begins with '[' on line 2 needs a ',' or ']' before ':'.",
        ),
        (
            "name: [a",
            "job.yaml:1: invalid YAML: the list that begins with '[' on line 1 needs a ',' or ']' before the end of the file.",
        ),
        (
            "name: {a: 1 b: 2}",
            "job.yaml:1: invalid YAML: the mapping that begins with '{' on line 1 needs a ',' or '}' before ':'.",
        ),
        (
            "name: 'a' b",
            "job.yaml:1: invalid YAML: 'b' follows a value that has ended; put quotes around the whole value.",
        ),
        (
            "name: ['a' c]",
            "job.yaml:1: invalid YAML: the list that begins with '[' on line 1 needs a ',' or ']' before 'c]'.",
        ),
        ("name: }", "job.yaml:1: invalid YAML: '}' closes nothing; remove it, or put quotes around the value."),
        ("name: a\nseed\nspace: 1", "job.yaml:2: invalid YAML: the line has no colon; write 'seed: …'."),
        ("name: 'ab\nspace: 1", "job.yaml:1: invalid YAML: the quotation mark ' before 'ab' is not closed."),
        ("name: @a", "job.yaml:1: invalid YAML: a value cannot begin with @; put quotes around it."),
        ("name: *a", "job.yaml:1: invalid YAML: a value that begins with * names another one; put quotes around it."),
        ("name: - a", "job.yaml:1: invalid YAML: a list with '- ' begins on a line of its own; or write [a, b]."),
        (
            "name: > 3",
            "job.yaml:1: invalid YAML: a value that begins with | or > continues on the next line; put quotes around it.",
        ),
        ("name: a\n---\nname: b", "job.yaml:2: invalid YAML: '---' begins a second document; keep one in a file."),
        (
            "name: !!python/object/apply:os.system ['true']",
            "job.yaml:1: name: got a list; expected a string.",
        ),
        (
            "name: !secret x",
            "job.yaml:1: the tag '!secret' is not supported; write plain strings and numbers.",
        ),
        ("[a, b]: 1", "job.yaml:1: got a list or a mapping in place of a field name; write a name."),
        (
            "name: &a [*a]",
            "job.yaml:1: values are nested too deeply; a document has at most 64 levels, and an alias may not contain itself.",
        ),
    ],
)
def test_errors_are_one_sentence_with_position_and_fix(text, message):
    assert complaint(text) == message


def test_nested_aliases_do_not_blow_up():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "use fewer aliases" in complaint("\n".join(lines))


def test_deep_nesting_is_refused():
    assert "nested too deeply" in complaint("name: " + "[" * 5000)


def test_files_that_are_not_documents(tmp_path):
    def said(path) -> str:
        with pytest.raises(InputError) as caught:
            read_document(path, Job)
        return str(caught.value).replace(str(tmp_path), "")

    (tmp_path / "latin.yaml").write_bytes("a: 1\nname: caf\u00e9".encode("latin-1"))
    (tmp_path / "huge.yaml").write_bytes(b"#" * (1 << 20) + b"\n")
    assert said(tmp_path / "none.yaml") == "/none.yaml: there is no such file; give the path of a YAML file."
    assert said(tmp_path / "latin.yaml") == "/latin.yaml:2: the file is not UTF-8 text; save it as UTF-8."
    assert said(tmp_path / "huge.yaml") == "/huge.yaml: the file has more than 1,048,576 bytes; give a smaller one."
    for name, size in (("program", 100), ("archive", 2 << 20)):
        (tmp_path / name).write_bytes(b"\x7fELF\0" + b"\xff" * size)
        assert said(tmp_path / name) == f"/{name}: this is no text, but a binary file; give the path of a YAML file."
    (tmp_path / "notepad.yaml").write_text("name: a", encoding="utf-16")
    assert said(tmp_path / "notepad.yaml").endswith("the file is not UTF-8 text; save it as UTF-8.")
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
