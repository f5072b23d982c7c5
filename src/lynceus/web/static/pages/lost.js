// An address where there is nothing: the way back, instead of an answer for programs.

import { shell, trouble } from "../lib/shell.js";

trouble(document.getElementById("main"), new Error("There is nothing at " + location.pathname.slice(0, 200) + "."));
shell("").catch(() => {});
