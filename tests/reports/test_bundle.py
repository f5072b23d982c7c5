"""Modules become one script in the order of their imports; unsupported forms are refused."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from lynceus.reports.bundle import bundled

NODE = shutil.which("node")
FILES = {
    "pages/a.js": """\
import { twice, one as first } from "../lib/b.js";
import { name } from "../lib/c.js";
console.log(name, twice(first));
""",
    "lib/b.js": """\
import { name } from "./c.js";
export const one = 20 + name.length;
export function twice(x) { return 2 * x; }
""",
    "lib/c.js": 'export const name = "c";\n',
}


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_script_does_what_the_modules_do() -> None:
    ended = subprocess.run([str(NODE), "-e", bundled("pages/a.js", FILES.__getitem__)], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("c 42\n", "")


def test_a_module_appears_once_and_after_its_imports() -> None:
    script = bundled("pages/a.js", FILES.__getitem__)
    assert script.count("const module_lib_c_js =") == 1
    assert (
        script.index("const module_lib_c_js =")
        < script.index("const module_lib_b_js =")
        < script.index("const module_pages_a_js =")
    )


@pytest.mark.parametrize(
    "text",
    [
        'import all from "./b.js";',
        'import "./b.js";',
        "export default 1;",
        "export { one };",
        'const x = await import("./b.js");',
    ],
)
def test_unsupported_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be bundled"):
        bundled("a.js", {"a.js": text, "b.js": ""}.__getitem__)


def test_circles_are_refused() -> None:
    files = {
        "a.js": 'import { b } from "./b.js";\nexport const a = 1;',
        "b.js": 'import { a } from "./a.js";\nexport const b = 1;',
    }
    with pytest.raises(ValueError, match="imports itself"):
        bundled("a.js", files.__getitem__)


def test_a_name_that_is_not_exported_is_refused() -> None:
    files = {"a.js": 'import { two } from "./b.js";', "b.js": "export const one = 1, two = 2;"}
    with pytest.raises(ValueError, match=r"a\.js imports two, which b\.js does not export"):
        bundled("a.js", files.__getitem__)
