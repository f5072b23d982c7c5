// Talking to the server: documents, changes as they happen, and the few things a person may do.

const BASE = "/api/v1";

/** The address of something below the API; every part is one path segment, whatever it holds. */
export const path = (...parts) => BASE + "/" + parts.map(encodeURIComponent).join("/");

const sentence = async (answer) => {
  try {
    const told = await answer.json();
    const text = told.detail ?? told.error ?? told.title;
    if (typeof text === "string") return text;
  } catch { /* not JSON: the status must do */ }
  return `The server answered ${answer.status} ${answer.statusText}.`;
};

const checked = async (answer) => {
  if (answer.status === 401) {
    location.assign("/login?next=" + encodeURIComponent(location.pathname + location.search));
    await new Promise(() => {});
  }
  if (!answer.ok) throw new Error(await sentence(answer));
  return answer.json();
};

/** A document. */
export const get = async (address, query = {}) => {
  const rest = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined)).toString();
  return checked(await fetch(address + (rest ? "?" + rest : ""), { headers: { Accept: "application/json" }, credentials: "same-origin" }));
};

/** Do something: once, also when the answer is lost and the button is pressed again by the browser. */
export const post = async (address, session, body = {}) => {
  const key = crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (one) => one.toString(16).padStart(2, "0")).join("");
  const headers = { "Content-Type": "application/json", Accept: "application/json", "Idempotency-Key": key, "X-CSRF-Token": session.csrf ?? "" };
  return checked(await fetch(address, { method: "POST", headers, body: JSON.stringify(body), credentials: "same-origin" }));
};

/** Who we are to the server. */
export const session = async () => {
  const answer = await fetch(path("session"), { headers: { Accept: "application/json" }, credentials: "same-origin" });
  return answer.ok ? answer.json() : { signed_in: false, can_read: false, can_write: false, csrf: null };
};

/** Call `changed` when the server says so, at most once at a time; `connected` hears whether the line is up. */
export const follow = (address, changed, connected = () => {}) => {
  let running = false, again = false, closed = false;
  const run = async (news) => {
    if (running) { again = true; return; }
    running = true;
    try { await changed(news); } catch (error) { connected(false, error.message); }
    running = false;
    if (again) { again = false; run(null); }
  };
  let source = null;
  const open = () => {
    source = new EventSource(address, { withCredentials: true });
    source.addEventListener("open", () => connected(true));
    source.addEventListener("changed", (event) => run(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      connected(false);
      if (source.readyState === EventSource.CLOSED && !closed) setTimeout(open, 3000);
    });
  };
  open();
  addEventListener("pagehide", () => { closed = true; source.close(); });
  return () => run(null);
};
