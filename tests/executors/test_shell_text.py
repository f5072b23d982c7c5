import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.executors.shell_text import fill_script

PLACES = [
    "printf %s ${x}",
    'printf %s "${x}"',
    "printf %s '${x}'",
    "printf %s \"$(printf %s ${x})\"",
    "printf %s \"$(printf %s \"${x}\"; (true))\"",
    "printf %s \"$(printf %s '${x}')\"",
    "(printf %s ${x})  # it's ${x}",
    "true \\' ; printf %s ${x}",
    "true \\\\ '\\' \"\\\"'\" ; printf %s '${x}'",
    "case a in a) printf %s \"${x}\";; esac",
    "true $((1 + 2)) <&0; printf %s ${x}",
]  # fmt: skip
"""Scripts that print a value."""
ODD = "'\"`$\\ ;&|()<>*?#!~{}=\n\tab-"
VALUES = st.text(st.sampled_from(ODD), max_size=8).filter(lambda text: not text.endswith("\n"))


@pytest.mark.parametrize("script", PLACES)
@settings(max_examples=15)
@given(value=VALUES | st.sampled_from(["$(touch pwned)", "'; touch pwned; '", '"; touch pwned; "', "${y}", "`id`"]))
def test_a_value_is_what_the_shell_reads_wherever_it_stands(script: str, value: str) -> None:
    filled = fill_script(script, {"x": value})
    done = subprocess.run(["/bin/sh", "-c", filled], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == value


@pytest.mark.parametrize(
    ("script", "where"),
    [
        ("echo `echo ${x}`", "backquotes"),
        ("cat <<end\n${x}\nend", "a here-document"),
        ("echo $'${x}'", r"\$'…'"),
        ("echo $(case a in a) echo ${x};; esac)", "a case inside parentheses"),
    ],
)
def test_a_value_that_cannot_be_quoted_is_refused(script: str, where: str) -> None:
    with pytest.raises(InputError, match=f"run: .*x.* stands in {where}.*leave out 'shell: true'"):
        fill_script(script, {"x": 1})
    assert fill_script(script, {"y": 1}) == script
