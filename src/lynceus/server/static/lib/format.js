// Numbers as text, formatted as on the command line.

const trimmed = (value, digits) => String(Number(value.toPrecision(digits)));

/** Dollars with two significant digits or two decimals. */
export const money = (usd) => {
  if (usd === null || usd === undefined) return "—";
  if (usd < 0) return "-" + money(-usd);
  if (usd === 0) return "$0";
  if (usd >= 999.995) return "$" + Math.round(usd).toLocaleString("en-US");
  if (usd >= 0.995) return "$" + usd.toFixed(2);
  const digits = Math.min(1 - Math.floor(Math.log10(usd)), 12);
  const text = usd.toFixed(digits);
  if (Number(text) === 0) return "$" + trimmed(usd, 2);
  const [whole, cents] = text.split(".");
  return "$" + whole + "." + cents.replace(/0+$/, "").padEnd(2, "0");
};

/** An expected improvement of an objective whose values `text` formats; less than every computation errs by is none. */
export const gainText = (gain, text) => (gain !== null && gain < 1e-12 ? "none" : text(gain));

/** Seconds in their two largest units. */
export const duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "—";
  if (seconds < 0) return "-" + duration(-seconds);
  if (seconds === 0) return "0s";
  if (seconds < 0.9995) return trimmed(seconds * 1000, 3) + "ms";
  if (seconds < 59.95) return trimmed(seconds, 3) + "s";
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

/** A number with six significant digits, and every digit before the point. */
export const formatNumber = (value) => {
  if (value === null || value === undefined) return "—";
  return Math.abs(value) >= 1e5 && Math.abs(value) < 1e15 ? value.toFixed(0) : trimmed(value, 6);
};

/** A count with thousands separators. */
// Bytes in powers of 1000, as everywhere in Lynceus: 2.1 GB.
export const bytes = (value) => {
  if (value === null || value === undefined) return null;
  const power = Math.min(Math.max(Math.floor(Math.log10(Math.max(value, 1)) / 3), 0), 5);
  return `${formatNumber(Number((value / 1000 ** power).toPrecision(3)))} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
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
