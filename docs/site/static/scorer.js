// Which results of the site's search come first: pages whose title has the words, then headings, then text; what fits alike by its name.
const fitOf = ([, shown, , , score, , kind], query) => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const [page, ...heading] = shown.split(" > "); // a heading stands behind the title of its page
  const title = heading.length ? heading.join(" > ") : page;
  const ofTitle = kind !== "text" || score >= 7; // Sphinx gives 5 or less for words of the text alone
  const level = !heading.length && has(page) ? 3 : ofTitle ? 2 : 1;
  return 1000 * level + (title.toLowerCase() === words.join(" ") ? 500 : 0) + score;
};

var Scorer = {
  score: (result) => fitOf(result, new URLSearchParams(window.location.search).get("q") ?? ""),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2, // Sphinx's own numbers
};
