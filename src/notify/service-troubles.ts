/**
 * Mailboxes that cannot be polled, grouped by cause: a service that fails for all its mailboxes is one trouble. Temporary
 * failures are one cause, whatever their codes; each other code is a cause of its own.
 */
import type { Fault } from "../base/faults.ts";
import { cut, type Notice } from "./notices.ts";

interface Cause {
  readonly service: string;
  readonly sinceMs: number;
  readonly mailboxes: Set<string>;
  fault: Pick<Fault, "message" | "advice">;
}

/** A mailbox and its cause. */
type FailingMailbox = [mailbox: string, key: string, service: string];

const MAX_NAMED = 20;

export class ServiceTroubles {
  /** Increases with each change that `snapshot` would contain. */
  revision = 0;
  readonly #causes = new Map<string, Cause>();
  /** By mailbox: the key of its cause. */
  readonly #keys = new Map<string, string>();
  readonly #blipMs: number;

  /** `blipMs`: a failure that is over within this time is not reported, unless it needs a person. */
  constructor(blipMs: number) {
    this.#blipMs = blipMs;
  }

  /** `begun`: the trouble of this mailbox. `droppedKey`: its previous trouble, if no other mailbox has it. */
  failed(
    mailbox: string,
    service: string,
    fault: Fault,
    nowMs: number,
  ): { begun: Notice; droppedKey?: string } {
    const key = `service ${service} ${fault.verdict === "retry" ? "outage" : fault.code}`;
    const before = this.#keys.get(mailbox);
    const dropped = before === undefined || before === key ? undefined : this.#leave(mailbox);
    const cause = this.#causes.get(key) ?? { service, sinceMs: nowMs, mailboxes: new Set<string>(), fault };
    cause.fault = fault;
    if (before !== key) this.revision++;
    cause.mailboxes.add(mailbox);
    this.#causes.set(key, cause);
    this.#keys.set(mailbox, key);
    const atMs = fault.verdict === "retry" ? cause.sinceMs + this.#blipMs : cause.sinceMs;
    const begun = { ...noticeOf(key, cause, atMs), isTrouble: true };
    return dropped === undefined ? { begun } : { begun, droppedKey: dropped.key };
  }

  /** The trouble that is over now, because the last of its mailboxes was polled. */
  succeeded(mailbox: string, nowMs: number): Notice | undefined {
    const ended = this.#leave(mailbox);
    if (ended === undefined) return undefined;
    const { key, cause } = ended;
    return { kind: "service", key, atMs: nowMs, isOver: true, service: cause.service };
  }

  /** Removes mailboxes that are no longer polled. Returns the keys of the troubles that end with them. */
  keepOnly(isPolled: (mailbox: string) => boolean): string[] {
    const gone = [...this.#keys.keys()].filter((mailbox) => !isPolled(mailbox));
    return gone.flatMap((mailbox) => this.#leave(mailbox)?.key ?? []);
  }

  snapshot(): FailingMailbox[] {
    return [...this.#causes].flatMap(([key, { service, mailboxes }]) =>
      [...mailboxes].map((mailbox): FailingMailbox => [mailbox, key, service]),
    );
  }

  restore(failing: readonly FailingMailbox[], nowMs: number): void {
    for (const [mailbox, key, service] of failing) {
      const fault = { message: "", advice: "" };
      const cause = this.#causes.get(key) ?? { service, sinceMs: nowMs, mailboxes: new Set<string>(), fault };
      cause.mailboxes.add(mailbox);
      this.#causes.set(key, cause);
      this.#keys.set(mailbox, key);
    }
  }

  /** Removes the mailbox from its cause. Returns the cause if this was its last mailbox. */
  #leave(mailbox: string): { readonly key: string; readonly cause: Cause } | undefined {
    const key = this.#keys.get(mailbox);
    const cause = key === undefined ? undefined : this.#causes.get(key);
    this.#keys.delete(mailbox);
    if (key === undefined || cause === undefined) return undefined;
    this.revision++;
    cause.mailboxes.delete(mailbox);
    if (cause.mailboxes.size > 0) return undefined;
    this.#causes.delete(key);
    return { key, cause };
  }
}

function noticeOf(key: string, { service, mailboxes, fault }: Cause, atMs: number): Notice {
  return {
    kind: "service",
    key,
    atMs,
    service,
    count: mailboxes.size,
    mailboxes: [...mailboxes].slice(0, MAX_NAMED),
    text: cut(fault.message),
    advice: fault.advice,
  };
}
