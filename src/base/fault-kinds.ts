/** What is said about each fault, and how groups of faults are written down. */

/**
 * What Inlet does about a fault.
 * - `retry`: it may pass by itself; try again soon, with back-off.
 * - `wait`: something outside has to change first (a person, a lock, a limit); trying again soon is useless or harmful.
 * - `quarantine`: Inlet cannot vouch for the content; keep it apart and report it.
 * - `fatal`: trying again cannot help; the request or the configuration has to change.
 */
export type Verdict = "retry" | "wait" | "quarantine" | "fatal";

/**
 * Who has to act: it decides how commands exit, and what doctor and the status say. `nobody`: it may pass by itself. `person`: the
 * operator, a sender, or an administrator of the service. `setup`: the configuration or the installation has to change. `rights`: this
 * user may not do it.
 */
export type Actor = "nobody" | "person" | "setup" | "rights" | "unknown";

export interface FaultMeaning {
  readonly verdict: Verdict;
  readonly actor: Actor;
  /** A sentence without its full stop: details may follow after a colon. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}

/** Faults with the same verdict and actor, as code → what happened, and advice. */
export function faults<Code extends string>(
  verdict: Verdict,
  actor: Actor,
  texts: Readonly<Record<Code, readonly [happened: string, advice: string]>>,
): Readonly<Record<Code, FaultMeaning>> {
  const entries = Object.entries<readonly [string, string]>(texts);
  return Object.fromEntries(
    entries.map(([code, [happened, advice]]) => [code, { verdict, actor, happened, advice }]),
  ) as Record<Code, FaultMeaning>;
}
