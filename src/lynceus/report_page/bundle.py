"""Scripts of the pages as one: a file that is opened from a disk can import nothing.

Every module becomes a function that is called once and returns what it exports; the text of modules stays as it is but for their first
words. Only the forms of `import` and `export` that the pages use are known: anything else is refused, not guessed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (const|function|class) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$|\bimport\(", re.MULTILINE)


def bundled(entry: str, read: Callable[[str], str]) -> str:
    """One script from a module and all that it imports; `read` gives the text of a module by its path.

    >>> files = {"a.js": 'import { one as two } from "./b.js";\\nconsole.log(two);', "b.js": "export const one = 1;"}
    >>> print(bundled("a.js", files.__getitem__))
    "use strict";
    (() => {
    const module_b_js = (() => {
    const one = 1;
    return { one };
    })();
    const module_a_js = (() => {
    const { one: two } = module_b_js;
    console.log(two);
    return {  };
    })();
    })();
    """
    parts: list[str] = []
    _add(entry, read, parts, ())
    return "\n".join(['"use strict";', "(() => {", *parts, "})();"])


def _add(path: str, read: Callable[[str], str], parts: list[str], above: tuple[str, ...]) -> None:
    """Append a module after everything that it imports, once."""
    begun = f"const {_name(path)} = (() => {{"
    if path in above:
        raise ValueError(f"{path} imports itself by way of {' and '.join(above)}")
    if any(part.startswith(begun) for part in parts):
        return
    text = read(path)
    folder = posixpath.dirname(path)
    for _, wanted in _IMPORT.findall(text):
        _add(posixpath.normpath(posixpath.join(folder, wanted)), read, parts, (*above, path))

    def taken(found: re.Match[str]) -> str:
        source = _name(posixpath.normpath(posixpath.join(folder, found[2])))
        return f"const {{{found[1].replace(' as ', ': ')}}} = {source};"

    exported = [name for _, name in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(taken, text))
    if (odd := _OTHER.search(body)) is not None:
        raise ValueError(f"{path}: {odd[0]!r} is a form of import or export that cannot be bundled")
    parts.append(f"{begun}\n{body.rstrip()}\nreturn {{ {', '.join(exported)} }};\n}})();")


def _name(path: str) -> str:
    return "module_" + re.sub(r"\W", "_", path)
