/** What is decided about a failure, and what it says to an operator. */

/**
 * What to do about a failure.
 * - `retry`: it may pass by itself; try again soon, with back-off.
 * - `wait`: something outside has to change first (a person, a lock, a limit); trying again soon does harm or nothing.
 * - `quarantine`: what arrived cannot be vouched for; keep it apart and report it.
 * - `fatal`: trying again cannot help this request; somebody has to change the request or the configuration.
 */
export type Verdict = "retry" | "wait" | "quarantine" | "fatal";

export interface FaultMeaning {
  readonly verdict: Verdict;
  /** What happened, as the beginning of a sentence: details may follow in parentheses. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}
