/** How much is walked of what takes long: `INLET_EXPLORE=long` walks all of it. */

/** Every so many points are enough for a run that is to be over soon. */
export function oneIn(every: number): number {
  return process.env["INLET_EXPLORE"] === undefined ? every : 1;
}
