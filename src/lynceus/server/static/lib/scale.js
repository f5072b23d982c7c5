// Scales from values to pixels, with round ticks.

const CLOCK = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800];

/** Smallest and largest of many numbers; spreading ten thousand arguments into Math.min would be slow. */
export const extent = (values) => {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? null : [low, high];
};

/** Whether the range is so wide that a logarithmic axis suits it better. */
export const wide = ([low, high]) => low > 0 && high / low > 8;

/** A scale from `low`..`high` to pixels `from`..`to`, with a margin of `air` on both sides. */
export const scale = (low, high, from, to, log = false, air = 0.05) => {
  if (high === low) {
    const half = Math.abs(low) * 0.1 || 0.5;
    [low, high] = [low - half, high + half];
    log = log && low > 0;
  }
  const f = log ? Math.log : (x) => x, g = log ? Math.exp : (x) => x;
  const more = (f(high) - f(low)) * air;
  const first = f(low) - more, last = f(high) + more;
  const at = (x) => from + ((f(x) - first) / (last - first)) * (to - from);
  at.back = (pixel) => g(first + ((pixel - from) / (to - from)) * (last - first));
  at.low = g(first);
  at.high = g(last);
  at.log = log;
  return at;
};

const thin = (found, most) => found.filter((_, index) => index % Math.ceil(found.length / most) === 0);

const multiples = (at, step) => {
  const found = [];
  for (let tick = Math.ceil(at.low / step) * step; tick <= at.high + step / 1e6; tick += step) found.push(Number(tick.toPrecision(12)));
  return found;
};

const even = (at, most) => {
  const raw = (at.high - at.low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const steps = [0.5, 1, 2, 5, 10].map((lead) => lead * power), rank = steps.findIndex((one) => one >= raw * 0.999);
  const found = multiples(at, steps[rank]);
  return found.length < 2 ? multiples(at, steps[rank - 1]) : found; // one tick tells no scale
};

const MORE_DIGITS = 9;

/**
 * The text of each tick. Where two would read the same, all get more digits: `text(value, {more})` writes so many more than usual. Texts
 * that cannot tell two values apart stand at the first of them only.
 */
export const tickTexts = (found, text) => {
  for (let more = 0; more <= MORE_DIGITS; more++) {
    const texts = found.map((tick) => text(tick, { more })).filter((one) => one !== "");
    if (new Set(texts).size === texts.length) return found.map((tick) => text(tick, { more }));
  }
  const texts = found.map((tick) => text(tick));
  return texts.map((one, index) => (texts.indexOf(one) === index ? one : ""));
};

/** At most `most` ticks of an axis; `clock` prefers whole seconds, minutes and hours. */
export const ticks = (at, most, clock = false) => {
  if (clock) {
    const found = at.log ? CLOCK.filter((tick) => tick >= at.low && tick <= at.high) : [];
    if (found.length >= 2) return thin(found, most);
    const first = CLOCK.findIndex((one) => one >= (at.high - at.low) / most);
    for (let rank = first < 0 ? CLOCK.length - 1 : first; rank >= 0; rank--) {
      const regular = multiples(at, CLOCK[rank]);
      if (regular.length >= 2) return regular.length > most + 1 ? thin(regular, most) : regular;
    }
  }
  if (at.log) {
    const found = [];
    for (let power = Math.floor(Math.log10(at.low)); power <= Math.ceil(Math.log10(at.high)); power++)
      for (const lead of [1, 2, 5]) {
        const tick = Number((lead * 10 ** power).toPrecision(12));
        if (tick >= at.low && tick <= at.high) found.push(tick);
      }
    if (found.length >= 2) return thin(found, most);
  }
  return even(at, most);
};
