// Marks that would hide each other are spread.

const WIDTH = 6, STEP = 3, MAX_LEVELS = 14, MAX_MARKS = 2000;

/** Pile marks that lie on each other upwards: a stopped run says "at least this much", and up is more. Marks are changed in place. */
export const pileUp = (marks, top) => {
  if (marks.length > MAX_MARKS) return marks;
  const taken = new Set();
  for (const mark of marks) {
    const column = Math.round(mark.x / WIDTH), rung = Math.round(mark.y / STEP);
    let level = 0;
    while (level < MAX_LEVELS && taken.has(column + " " + (rung - level))) level++;
    taken.add(column + " " + (rung - level));
    mark.y = Math.max(top, mark.y - level * STEP);
  }
  return marks;
};
