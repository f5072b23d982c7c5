// Requests to the server: documents, live events, and commands.

const BASE = "/api/v1";

/** A URL below the API; every part is one path segment, whatever characters it has. */
export const path = (...parts) => BASE + "/" + parts.map(encodeURIComponent).join("/");

/** A segment of the address of this page; as it stands there when its percent signs mean nothing. */
export const segment = (rank) => {
  const text = location.pathname.split("/")[rank] ?? "";
  try { return decodeURIComponent(text); } catch { return text; }
};

/** What the server says of a request that it refused. */
export const sentence = async (response) => {
  try {
    const problem = await response.json();
    const text = problem.detail ?? problem.title;
    if (typeof text === "string") return text;
  } catch { /* not JSON */ }
  return `The server answered ${response.status} ${response.statusText}.`;
};

const checked = async (response) => {
  if (response.status === 401) {
    location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
    await new Promise(() => {});
  }
  if (!response.ok) throw new Error(await sentence(response));
  return response.json();
};

/** Fetch a document. */
export const get = async (address, query = {}) => {
  const rest = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined)).toString();
  return checked(await fetch(address + (rest ? "?" + rest : ""), { headers: { Accept: "application/json" }, credentials: "same-origin" }));
};

/** Send a command. The key makes it take effect once, even if the browser sends it twice. */
export const post = async (address, session, body = {}, method = "POST") => {
  const key = crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
  const headers = { "Content-Type": "application/json", Accept: "application/json", "Idempotency-Key": key, "X-CSRF-Token": session.csrf ?? "" };
  return checked(await fetch(address, { method, headers, body: method === "DELETE" ? undefined : JSON.stringify(body), credentials: "same-origin" }));
};

/** What this browser is allowed to do. */
export const session = async () => {
  const response = await fetch(path("session"), { headers: { Accept: "application/json" }, credentials: "same-origin" });
  return response.ok ? response.json() : { signed_in: false, role: null, token: null, can_read: false, can_write: false, csrf: null };
};

/** Call `changed` for every event, one call at a time; `connected` is called with whether the connection is up, `gone` when the study is no longer there. */
export const follow = (address, changed, connected = () => {}, gone = () => {}) => {
  let running = false, again = false, closed = false;
  const run = async (event) => {
    if (running) { again = true; return; }
    running = true;
    try { await changed(event); } catch (error) { connected(false, error.message); }
    running = false;
    if (again) { again = false; run(null); }
  };
  let source = null;
  const open = () => {
    source = new EventSource(address, { withCredentials: true });
    source.addEventListener("open", () => connected(true));
    source.addEventListener("changed", (message) => run(JSON.parse(message.data)));
    source.addEventListener("gone", () => gone());
    source.addEventListener("error", () => {
      connected(false);
      if (source.readyState === EventSource.CLOSED && !closed) setTimeout(open, 3000);
    });
  };
  open();
  addEventListener("pagehide", () => { closed = true; source.close(); });
  return () => run(null);
};
