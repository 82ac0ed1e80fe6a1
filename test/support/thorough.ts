/** How thorough long tests are: `INLET_EXPLORE=long` runs every point. */

/** The default is every `every`th point. */
export function oneIn(every: number): number {
  return process.env["INLET_EXPLORE"] === undefined ? every : 1;
}
