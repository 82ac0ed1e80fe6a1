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
 * Who has to act: it decides how commands exit, and what doctor and the status say. `none`: it may pass by itself. `person`: the
 * operator, a sender, or an administrator of the service. `setup`: the configuration or the installation has to change. `rights`: this
 * user may not do it.
 */
export type Actor = "none" | "person" | "setup" | "rights" | "unknown";

export interface Counting {
  /** The kinds of notifications. */
  readonly notices: readonly string[];
  readonly metric?: string;
  /** Whether doctor looks for such faults. */
  readonly isChecked?: boolean;
}

/** What a fault is about, and where it is counted. */
export const AREAS = {
  /** The answer to a command or a request, or the end of the program. */
  command: { notices: [] },
  service: { notices: ["service"], metric: "inlet_mailbox_up", isChecked: true },
  mailbox: {
    notices: ["service", "refused", "overdue", "verification"],
    metric: "inlet_mailbox_up",
    isChecked: true,
  },
  transfer: { notices: ["password", "quarantined", "refused", "gone"], metric: "inlet_attention" },
  disk: { notices: ["disk"], metric: "inlet_trouble", isChecked: true },
  queue: { notices: ["queue"], metric: "inlet_trouble", isChecked: true },
  handoff: { notices: ["handoff"], metric: "inlet_attention" },
  notifications: { notices: [], metric: "inlet_trouble", isChecked: true },
  /** Something has not happened, and no failed call explains it. */
  late: { notices: ["stalled"], metric: "inlet_overdue_seconds" },
} as const satisfies Readonly<Record<string, Counting>>;

export type Area = keyof typeof AREAS;

export interface FaultMeaning {
  readonly area: Area;
  readonly verdict: Verdict;
  readonly actor: Actor;
  /** A sentence without its full stop: details may follow after a colon. */
  readonly happened: string;
  /** What the operator can do. */
  readonly advice: string;
}

/** Faults with the same area, verdict and actor, as code → what happened, a full stop, and advice. */
export function faults<Code extends string>(
  area: Area,
  verdict: Verdict,
  actor: Actor,
  texts: Readonly<Record<Code, `${string}. ${string}`>>,
): Readonly<Record<Code, FaultMeaning>> {
  const meanings = Object.entries<string>(texts).map(([code, text]) => {
    const [, happened = "", advice = ""] = /^(.*?)\. (.*)$/.exec(text) ?? [];
    return [code, { area, verdict, actor, happened, advice }];
  });
  return Object.fromEntries(meanings) as Record<Code, FaultMeaning>;
}
