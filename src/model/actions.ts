/** What can be done with a transfer: decided here, for the status, the story, the console and the commands alike. */
import { ACTIONS, type Action, type CommandOptions, commandFor, type TransferAct } from "./order.ts";
import {
  BROWSER,
  hasEnded,
  IGNORED,
  isDelivered,
  isHeld,
  needsNoAttention,
  type TransferRecord,
  waitsForPassword,
} from "./record.ts";

type Facts = Pick<TransferRecord, "state"> & Partial<Pick<TransferRecord, "reason" | "acknowledged" | "at">>;

/** Why a transfer cannot be delivered again, for people. */
export const NOT_LISTED = "the service no longer has it";

/**
 * Why the action cannot be done with a transfer in its state, for people; `undefined` if it can. `isHandedOver`: no
 * command or webhook is left to retry.
 */
export function objectionTo(action: Action, facts: Facts, isHandedOver = true): string | undefined {
  const { state } = facts;
  const only = (isPossible: boolean, what: string) =>
    isPossible ? undefined : `it is ${state}, and only a ${what}`;
  const isQuarantined = state === "quarantined";
  if (action === "release")
    return only(isQuarantined || isHeld(facts), "transfer that is in quarantine or held can be released");
  // The end of the round is decided, also while its content cannot be moved.
  const isDecided = isDelivered(facts) || (state === "delivering" && facts.at?.delivered !== undefined);
  if (action === "redeliver") return only(isDecided, "delivered transfer can be delivered again");
  if (action === "retry" && isHeld(facts)) return "a route holds it: release it, or discard it";
  const isOpen = !hasEnded(facts) && state !== "delivering";
  const isUnsettled =
    action === "retry"
      ? facts.reason === IGNORED || (isDelivered(facts) && !isHandedOver)
      : state === "gone" && !needsNoAttention(facts);
  if (isOpen || isQuarantined || isUnsettled) return undefined;
  return `it is ${state}, and nothing is left to ${action}`;
}

/**
 * The acts that apply, the most helpful first. Without its mailbox, a transfer can only be discarded. Where a password or a
 * browser is needed, a retry does not help.
 */
export function actionsFor(
  facts: Facts,
  about: { readonly isExhausted?: boolean; readonly isHandedOver: boolean; readonly isConfigured: boolean },
): TransferAct[] {
  const { isExhausted, isHandedOver, isConfigured } = about;
  const possible = ACTIONS.filter(
    (action) =>
      (isConfigured || action === "discard") && objectionTo(action, facts, isHandedOver) === undefined,
  );
  const others = possible.filter((action) => action !== "retry");
  if (facts.reason === BROWSER) return others;
  if (!waitsForPassword(facts) || !isConfigured) return possible;
  return [isExhausted ? "grant" : "password", ...others];
}

export function commandOf(act: TransferAct, trackingId: string, options: CommandOptions = {}): string {
  return act === "grant"
    ? commandFor("password", trackingId, { ...options, onceMore: true })
    : commandFor(act, trackingId, options);
}

interface ActTexts {
  /** On a button, and in a question about several transfers. */
  readonly label: string;
  /** What a person should know before it is done; without it nobody is asked. */
  readonly warning?: string;
}

export const ACT_TEXTS: Readonly<Record<TransferAct, ActTexts>> = {
  retry: { label: "Retry" },
  release: {
    label: "Release",
    warning:
      "It is delivered on your responsibility, although its verification, the check or a route says otherwise.",
  },
  discard: {
    label: "Discard",
    warning: "Its content here is deleted, and it is never delivered, even if the service still lists it.",
  },
  redeliver: {
    label: "Deliver again",
    warning: "It is downloaded and delivered once more: its consumer gets it twice.",
  },
  password: {
    label: "Supply password",
    warning:
      "Wrong passwords count: a service may delete a transfer after a few. One of these transfers is tried first, and the others only if the password opens it.",
  },
  grant: {
    label: "Allow one more attempt",
    warning: "The service may delete the transfer for all recipients after too many wrong passwords.",
  },
};
