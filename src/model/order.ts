/** What an operator wants done with one transfer. */

export const ACTIONS = ["retry", "release", "discard", "redeliver"] as const;

/**
 * `retry`: now, not later; one in quarantine from the start. `release`: deliver one in quarantine, on the operator's
 * word. `discard`: drop it, for good. `redeliver`: deliver once more what was delivered.
 */
export type Action = (typeof ACTIONS)[number];

export interface Order {
  readonly action: Action;
  readonly mailbox: string;
  readonly trackingId: string;
  /** The transfer's round when the order was given: in a later one the order was carried out already. */
  readonly round: number;
  /** Who gave it. */
  readonly by: string;
  /** With `retry`: how many password attempts beyond the budget are allowed from now on. */
  readonly grants?: number | undefined;
}

/** What a command needs beside the transfer, to mean this one. */
export interface CommandWay {
  readonly config?: string | undefined;
  readonly mailbox?: string | undefined;
  /** With `password`: one more attempt is allowed. */
  readonly onceMore?: boolean;
}

/** What to type in a shell: whatever is not plain goes into single quotes. */
export function commandFor(
  action: Action | "password",
  trackingId: string,
  { config, mailbox, onceMore }: CommandWay = {},
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
