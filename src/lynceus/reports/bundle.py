"""Bundle the scripts of the pages into one, because a file that is opened from a disk cannot import modules.

Every module becomes a function that is called once and returns its exports; otherwise its text is unchanged. Only the forms of `import`
and `export` that the pages use are supported; any other form is an error.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (const|function|class) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$|\bimport\(", re.MULTILINE)


@dataclass(frozen=True)
class _Module:
    script: str
    exports: tuple[str, ...]


def bundled(entry: str, read: Callable[[str], str]) -> str:
    """One script from a module and everything it imports; `read` returns the text of a module by its path.

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
    done: dict[str, _Module] = {}
    _add(entry, read, done, ())
    return "\n".join(['"use strict";', "(() => {", *(module.script for module in done.values()), "})();"])


def module_paths(entry: str, read: Callable[[str], str]) -> tuple[str, ...]:
    """A module and everything it imports, each after its own imports."""
    done: dict[str, _Module] = {}
    _add(entry, read, done, ())
    return tuple(done)


def _add(path: str, read: Callable[[str], str], done: dict[str, _Module], above: tuple[str, ...]) -> None:
    """Add a module after everything it imports, once."""
    if path in above:
        raise ValueError(f"{path} imports itself through {' and '.join(above)}")
    if path in done:
        return
    text, folder = read(path), posixpath.dirname(path)
    for names, wanted in _IMPORT.findall(text):
        source = posixpath.normpath(posixpath.join(folder, wanted))
        _add(source, read, done, (*above, path))
        for name in filter(None, (each.split(" as ")[0].strip() for each in names.split(","))):
            if name not in done[source].exports:
                raise ValueError(f"{path} imports {name}, which {source} does not export in a supported form")

    def assignment(found: re.Match[str]) -> str:
        source = _name(posixpath.normpath(posixpath.join(folder, found[2])))
        return f"const {{{found[1].replace(' as ', ': ')}}} = {source};"

    exports = tuple(name for _, name in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(assignment, text))
    if (other := _OTHER.search(body)) is not None:
        raise ValueError(f"{path}: {other[0]!r} is a form of import or export that cannot be bundled")
    script = f"const {_name(path)} = (() => {{\n{body.rstrip()}\nreturn {{ {', '.join(exports)} }};\n}})();"
    done[path] = _Module(script, exports)


def _name(path: str) -> str:
    return "module_" + re.sub(r"\W", "_", path)
