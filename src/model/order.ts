/** Orders of operators: what they are, who gives them, who may, and the commands that give them. */
import * as v from "valibot";

export const ACTIONS = ["retry", "release", "discard", "redeliver"] as const;

/**
 * `retry`: try now; a quarantined transfer starts afresh, and so does one that the configuration leaves out. `release`:
 * deliver a quarantined transfer on the operator's responsibility, or one that a route holds. `discard`: drop it for good.
 * `redeliver`: deliver a delivered transfer once more.
 */
export type Action = (typeof ACTIONS)[number];

const MAX_NAME_CHARACTERS = 200;
const MAX_HOST_CHARACTERS = 300;

/** Untrusted text, in one line of bounded length. */
function oneLine(maxCharacters: number) {
  return v.pipe(
    v.string(),
    v.transform((text) =>
      text
        .toWellFormed()
        .replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "?")
        .slice(0, maxCharacters),
    ),
  );
}

/** `who`: a user of the system, the name of a token, or what a program claims. `from`: a host or an address. */
export const ActorShape = v.object({
  who: oneLine(MAX_NAME_CHARACTERS),
  from: oneLine(MAX_HOST_CHARACTERS),
});

export type Actor = Readonly<v.InferOutput<typeof ActorShape>>;

/** Long names are cut, and characters that could hide text are replaced. */
export function actorOf(who: string, from: string): Actor {
  return v.parse(ActorShape, { who: who === "" ? "unknown" : who, from });
}

/** What a token of the console and its API allows. `operate` includes `read`. */
export const ROLES = ["read", "operate"] as const;

export type Role = (typeof ROLES)[number];

/** What needs a token to be read: nothing; pages and API; or also `/metrics` and `/readyz`. */
export const READ_ACCESS = ["open", "token", "token-for-all"] as const;

export type ReadAccess = (typeof READ_ACCESS)[number];

/** `password`: supply one. `grant`: allow one more password attempt for a transfer that has none left. */
export const TRANSFER_ACTS = [...ACTIONS, "password", "grant"] as const;

export type TransferAct = (typeof TRANSFER_ACTS)[number];

/** `poll`: poll now. `pause`, `resume`: stop and continue the intake. */
export const MAILBOX_ACTS = ["poll", "pause", "resume"] as const;

export type MailboxAct = (typeof MAILBOX_ACTS)[number];

/**
 * About transfers that may have been delivered before: `adopt`: they were, so they are left out; `anew`: they are delivered,
 * perhaps once more.
 */
export const DECISIONS = ["adopt", "anew"] as const;

export type Decision = (typeof DECISIONS)[number];

export function isDecision(word: string): word is Decision {
  return (DECISIONS as readonly string[]).includes(word);
}

/** Everything that the journal records of operators. */
export const ACTS = [...TRANSFER_ACTS, ...MAILBOX_ACTS, ...DECISIONS, "reload", "reload-refused"] as const;

export type Act = (typeof ACTS)[number];

const OfMailbox = { mailbox: v.string(), by: ActorShape };
/** `round`: of the transfer when the order was given. In a later round the order is done already. */
const OfTransfer = { ...OfMailbox, trackingId: v.string(), round: v.number() };

/** `grants`: with `retry`, password attempts allowed beyond the budget from now on. `isHeld`: a route holds the transfer. */
export const OrderShape = v.object({
  ...OfTransfer,
  action: v.picklist(ACTIONS),
  grants: v.optional(v.number()),
  isHeld: v.optional(v.boolean()),
});

/** Says who supplied a password. The password itself is elsewhere. */
export const PasswordNoticeShape = v.object({ ...OfTransfer, action: v.literal("password") });

/** An act on a mailbox. For `pause` and `resume` it only says who acted: the pause itself is elsewhere. */
export const MailboxOrderShape = v.object({ ...OfMailbox, action: v.picklist(MAILBOX_ACTS) });

export type Order = Readonly<v.InferOutput<typeof OrderShape>>;
export type PasswordNotice = Readonly<v.InferOutput<typeof PasswordNoticeShape>>;
/** Without the keys of a transfer, for which code that takes any order may look. */
export type MailboxOrder = Readonly<
  v.InferOutput<typeof MailboxOrderShape> & { trackingId?: undefined; round?: undefined }
>;

export interface CommandOptions {
  readonly config?: string | undefined;
  readonly mailbox?: string | undefined;
  /** With `password`: one more attempt is allowed. */
  readonly onceMore?: boolean;
}

/** A command to type in a shell, quoted where necessary. */
export function commandFor(
  action: Action | "password" | "show" | "verify-address" | "resume",
  /** A tracking-id or a mailbox. `undefined`: all mailboxes. */
  subject: string | undefined,
  { config, mailbox, onceMore }: CommandOptions = {},
): string {
  const options = [
    ...(config === undefined ? [] : ["--config", quote(config)]),
    ...(mailbox === undefined ? [] : ["--mailbox", quote(mailbox)]),
    ...(onceMore ? ["--once-more"] : []),
  ];
  const words = subject === undefined ? [] : [...(isPlain(subject) ? [] : ["--"]), quote(subject)];
  return ["inlet", action, ...options, ...words].join(" ");
}

function isPlain(text: string): boolean {
  return /^[\w.@/][\w.@/-]*$/.test(text);
}

export function quote(text: string): string {
  return isPlain(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
