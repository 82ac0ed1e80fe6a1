/** The verdict of a fault, and its texts for the operator. */

/**
 * What Inlet does about a fault.
 * - `retry`: it may pass by itself; try again soon, with back-off.
 * - `wait`: something outside has to change first (a person, a lock, a limit); trying again soon does harm or nothing.
 * - `quarantine`: what arrived cannot be vouched for; keep it apart and report it.
 * - `fatal`: trying again cannot help; the request or the configuration has to change.
 */
export type Verdict = "retry" | "wait" | "quarantine" | "fatal";

export interface FaultMeaning {
  readonly verdict: Verdict;
  /** A sentence without its full stop: details may follow after a colon. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}
