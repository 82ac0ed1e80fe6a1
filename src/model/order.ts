/** An operator's order for one transfer, and the command that gives it. */

export const ACTIONS = ["retry", "release", "discard", "redeliver"] as const;

/**
 * `retry`: try now; a quarantined transfer starts afresh. `release`: deliver a quarantined transfer on the operator's
 * responsibility. `discard`: drop it for good. `redeliver`: deliver a delivered transfer once more.
 */
export type Action = (typeof ACTIONS)[number];

export interface Order {
  readonly action: Action;
  readonly mailbox: string;
  readonly trackingId: string;
  /** The transfer's round when the order was given. In a later round the order is done already. */
  readonly round: number;
  /** The operator's name. */
  readonly by: string;
  /** With `retry`: password attempts allowed beyond the budget from now on. */
  readonly grants?: number | undefined;
}

/** Options of a command that acts on a transfer. */
interface CommandOptions {
  readonly config?: string | undefined;
  readonly mailbox?: string | undefined;
  /** With `password`: one more attempt is allowed. */
  readonly onceMore?: boolean;
}

/** A command to type in a shell, quoted where necessary. */
export function commandFor(
  action: Action | "password" | "show",
  trackingId: string,
  { config, mailbox, onceMore }: CommandOptions = {},
): string {
  const options = [
    ...(config === undefined ? [] : ["--config", quote(config)]),
    ...(mailbox === undefined ? [] : ["--mailbox", quote(mailbox)]),
    ...(onceMore ? ["--once-more"] : []),
  ];
  const word = quote(trackingId);
  return ["inlet", action, ...options, ...(isPlain(trackingId) ? [word] : ["--", word])].join(" ");
}

function isPlain(text: string): boolean {
  return /^[\w.@/][\w.@/-]*$/.test(text);
}

function quote(text: string): string {
  return isPlain(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
