/**
 * How thorough long tests are: `INLET_EXPLORE=long` runs every point. Worlds explore all of them in virtual time; real
 * processes and disks show some of them.
 */

/** The default is every `every`th point. */
export function oneIn(every: number): number {
  return process.env["INLET_EXPLORE"] === undefined ? every : 1;
}
