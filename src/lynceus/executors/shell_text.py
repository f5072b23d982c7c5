"""Values of parameters in a shell script (`shell: true`): quoted for the place where they stand, so that none is read as code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from lynceus.errors import InputError
from lynceus.executors.placeholders import PLACEHOLDER, as_text

_NAME = PLACEHOLDER.pattern
_PLAIN = rf"\\.|\$'|<<<?|\$\(|(?<![^\s;&|()])\#[^\n]*|['\"`()]|{_NAME}"
_TOKENS = {
    "": re.compile(_PLAIN, re.DOTALL),
    "(": re.compile(rf"\bcase\b|{_PLAIN}", re.DOTALL),
    '"': re.compile(rf"\\.|\$\(|[\"`]|{_NAME}", re.DOTALL),
    "'": re.compile(rf"'|{_NAME}"),
    "$'": re.compile(rf"\\.|'|{_NAME}", re.DOTALL),
    "`": re.compile(rf"\\.|`|{_NAME}", re.DOTALL),
    "<<": re.compile(_NAME),
    "case": re.compile(_NAME),
}
"""What matters to a shell by where it stands: plain, inside parentheses, in quotes."""
_ENDS = {"(": ")", '"': '"', "'": "'", "$'": "'", "`": "`"}
_OPENS = {"(": "(", "$(": "(", '"': '"', "'": "'", "$'": "$'", "`": "`", "<<": "<<", "case": "case"}
_TOO_INTRICATE = {
    "$'": "$'…'",
    "`": "backquotes",
    "<<": "a here-document, or after one",
    "case": "a case inside parentheses",
}
"""Places where a value cannot be quoted, or whose end is not looked for."""


def fill_script(script: str, values: Mapping[str, object]) -> str:
    r"""The script with values in place of `${name}`; unknown names and comments stay as they are.

    >>> print(fill_script('''echo ${x} "a ${x}" 'b ${x}' # ${x}''', {"x": "it's $5"}))
    echo 'it'"'"'s $5' "a it's \$5" 'b it'\''s $5' # ${x}
    """
    filled, at, places = [], 0, [""]
    while (token := _TOKENS[places[-1]].search(script, at)) is not None:
        text, place = token.group(), places[-1]
        filled.append(script[at : token.start()])
        at = token.end()
        if (name := PLACEHOLDER.fullmatch(text)) is not None:
            known = name.group(1) in values
            filled.append(_quoted(name.group(1), as_text(values[name.group(1)]), place) if known else text)
            continue
        filled.append(text)
        if text == _ENDS.get(place):
            places.pop()
        elif text in _OPENS:
            places.append(_OPENS[text])
    return "".join([*filled, script[at:]])


def _quoted(name: str, value: str, place: str) -> str:
    if place == '"':
        return re.sub(r'([\\"$`])', r"\\\1", value)
    if place == "'":
        return value.replace("'", "'\\''")
    if place in _TOO_INTRICATE:
        raise InputError(
            f"run: ${{{name}}} stands in {_TOO_INTRICATE[place]}, where its value cannot be quoted; move it out of there, "
            f"or leave out 'shell: true', so that the script reads the variable {name}."
        )
    return shlex.quote(value)
