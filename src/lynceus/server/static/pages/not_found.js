// The page for unknown addresses.

import { shell, showError } from "../lib/shell.js";

showError(document.getElementById("main"), new Error("There is nothing at " + location.pathname.slice(0, 200) + "."));
shell("").catch(() => {});
