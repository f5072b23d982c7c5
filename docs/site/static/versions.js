// Offers the other versions of the site that lie beside this one; without a server (or alone), the list has one entry.
"use strict";
document.addEventListener("DOMContentLoaded", async () => {
  const select = document.getElementById("versions");
  const root = new URL(document.documentElement.dataset.content_root || "./", document.baseURI);
  try {
    const versions = await (await fetch(new URL("../versions.json", root))).json();
    const here = select.value;
    select.replaceChildren(...versions.map((one) => new Option(one, one, false, one === here)));
    select.addEventListener("change", () => { location.href = new URL(`../${select.value}/index.html`, root); });
  } catch { /* opened from a folder: browsers do not read files beside it */ }
});
