// Numbers as text, formatted as on the command line.

const trimmed = (value, digits) => String(Number(value.toPrecision(digits)));

/** Dollars with two significant digits or two decimals, and `more` digits where ticks of an axis would read the same without. */
export const money = (usd, { more = 0 } = {}) => {
  if (usd === null || usd === undefined) return "—";
  if (usd < 0) return "-" + money(-usd, { more });
  if (usd === 0) return "$0";
  if (usd >= 999.995) return "$" + usd.toLocaleString("en-US", { minimumFractionDigits: more && more + 1, maximumFractionDigits: more && more + 1 });
  if (usd >= 0.995) return "$" + usd.toFixed(2 + more);
  const digits = Math.min(1 - Math.floor(Math.log10(usd)), 12) + more;
  const text = usd.toFixed(digits);
  if (Number(text) === 0) return "$" + trimmed(usd, 2 + more);
  const [whole, cents] = text.split(".");
  return "$" + whole + "." + cents.replace(/0+$/, "").padEnd(2, "0");
};

/** An expected improvement of an objective whose values `text` formats; less than every computation errs by is none. */
export const gainText = (gain, text) => (gain !== null && gain < 1e-12 ? "none" : text(gain));

const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];

/** Seconds in as many more units than two, then decimals of the seconds: 3h 12m is 3h12m10s, then 3h12m10.4s. */
const finer = (seconds, more) => {
  const first = UNITS.findIndex(([, size]) => seconds >= size), last = Math.min(first + 1 + more, UNITS.length - 1);
  const decimals = first + 1 + more - last, unit = UNITS[last][1] / 10 ** decimals;
  let parts = Math.round(seconds / unit), text = "";
  for (const [name, size] of UNITS.slice(first, last)) {
    const whole = Math.round(size / unit), count = Math.floor(parts / whole);
    if (count) text += count + name;
    parts -= count * whole;
  }
  return parts ? text + Number((parts / 10 ** decimals).toFixed(decimals)) + UNITS[last][0] : text;
};

/** Seconds in their two largest units; `more` digits as in `money`. */
export const duration = (seconds, { more = 0 } = {}) => {
  if (seconds === null || seconds === undefined) return "—";
  if (seconds < 0) return "-" + duration(-seconds, { more });
  if (seconds === 0) return "0s";
  if (seconds < 0.9995) return trimmed(seconds * 1000, 3 + more) + "ms";
  if (seconds < (more ? 60 : 59.95)) return trimmed(seconds, 3 + more) + "s";
  if (more) return finer(seconds, more);
  const units = [["m", "s", 60, 1, 3600], ["h", "m", 60, 60, 86400], ["d", "h", 24, 3600, Infinity]];
  const [large, small, unit, size] = units.find(([, , , size, most]) => Math.round(seconds / size) * size < most);
  const parts = Math.round(seconds / size), rest = parts % unit;
  return Math.floor(parts / unit) + large + (rest ? rest + small : "");
};

/** A countdown in whole seconds, so that it does not flicker. */
export const countdown = (seconds) => {
  const left = Math.max(0, Math.ceil(seconds));
  if (left < 60) return left + "s";
  if (left < 3600) return Math.floor(left / 60) + "m" + String(left % 60).padStart(2, "0") + "s";
  return Math.floor(left / 3600) + "h" + String(Math.floor((left % 3600) / 60)).padStart(2, "0") + "m";
};

/** A number with six significant digits, and every digit before the point; `more` digits as in `money`. */
export const formatNumber = (value, { more = 0 } = {}) => {
  if (value === null || value === undefined) return "—";
  return Math.abs(value) >= 1e5 && Math.abs(value) < 1e15 ? value.toFixed(more) : trimmed(value, 6 + more);
};

/** A count with thousands separators. */
// Bytes in powers of 1000, as everywhere in Lynceus: 2.1 GB.
export const bytes = (value, { more = 0 } = {}) => {
  if (value === null || value === undefined) return null;
  const power = Math.min(Math.max(Math.floor(Math.log10(Math.max(value, 1)) / 3), 0), 5);
  return `${formatNumber(Number((value / 1000 ** power).toPrecision(3 + more)), { more })} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
};

export const count = (value) => (value === null || value === undefined ? "—" : Number(value).toLocaleString("en-US"));

/** A share in percent: 0 % and 100 % only when it is exactly that. */
export const percent = (share) => {
  if (share === null || share === undefined) return "unknown";
  if (share > 0.99 && share < 1) return "> 99 %";
  if (share > 0 && share < 0.01) return "< 1 %";
  return Math.round(share * 100) + " %";
};

/** Seconds since the epoch as local date and time. */
export const dateTime = (seconds) =>
  seconds === null || seconds === undefined ? "—" : new Date(seconds * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** A configuration in one line. */
export const paramsText = (params) => Object.entries(params ?? {}).map(([name, value]) => name + "=" + formatValue(value)).join(" ");

/** A value of a parameter. */
export const formatValue = (value) => (value === null || value === undefined ? "—" : value === true ? "true" : value === false ? "false" : String(value));

/** A count with its noun. */
export const counted = (number, one, several = one + "s") => count(number) + " " + (number === 1 ? one : several);

/** The objective of a study: its metric and direction, its label on an axis, and how its values are formatted. */
export const parseObjective = (objective) => {
  const metric = (objective ?? "minimize cost").replace(/^\S+ /, "");
  const maximise = (objective ?? "").startsWith("maximize");
  const text = metric === "cost" ? money : metric === "time" ? duration : formatNumber;
  const label = metric === "cost" ? "cost of a run" : metric === "time" ? "time of a run" : metric;
  return { metric, maximise, text, label };
};
