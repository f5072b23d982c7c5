// What lies far below the first screen is drawn when it comes near.

const NEAR = "400px";

/** Call `act(visible)` whenever an element comes near the screen or leaves it.

A busy browser reports several changes in one call, oldest first: the last one says how it is now. */
export const onVisibilityChange = (element, act) =>
  new IntersectionObserver((changes) => act(changes.at(-1).isIntersecting), { rootMargin: NEAR }).observe(element);
