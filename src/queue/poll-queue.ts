/** Polls that are due: each service has a queue, and the service with the fewest running polls goes first. */
import { POLLS_AT_ONCE, type Services } from "../model/job.ts";
import { type Holder, Slots } from "./slots.ts";

export class PollQueue {
  readonly #slots: Slots;
  readonly #poll: (mailbox: string) => Promise<void>;
  /** By service, oldest first. */
  readonly #due = new Map<string, Set<string>>();
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>();
  /** Waiting mailboxes that are polled even if their service is limited. */
  readonly #urgent = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  #closed = false;

  /** `poll` must not throw. */
  constructor(services: Services, poll: (mailbox: string) => Promise<void>) {
    this.#slots = new Slots(() => POLLS_AT_ONCE, services);
    this.#poll = poll;
  }

  /** Queued or running. */
  has(mailbox: string): boolean {
    return this.#waiting.has(mailbox) || this.#running.has(mailbox);
  }

  /**
   * Resolves when a poll that started after this call is over, or when the mailbox is dropped. A mailbox never has two polls
   * at once. `isUrgent`: a limit of the service does not drop it.
   */
  add(mailbox: string, isUrgent = false): Promise<void> {
    if (this.#closed) return Promise.resolve();
    if (isUrgent) this.#urgent.add(mailbox);
    const waiting = this.#waiting.get(mailbox);
    if (waiting !== undefined) return waiting.promise;
    const running = this.#running.get(mailbox);
    if (running !== undefined) return running.then(() => this.add(mailbox, isUrgent));
    const added = Promise.withResolvers<void>();
    this.#waiting.set(mailbox, added);
    const service = this.#slots.serviceOf(mailbox);
    this.#due.set(service, (this.#due.get(service) ?? new Set()).add(mailbox));
    this.#fill();
    return added.promise;
  }

  /** Removes a mailbox from the queue. A running poll goes on. */
  drop(mailbox: string): void {
    for (const due of this.#due.values()) due.delete(mailbox);
    this.#waiting.get(mailbox)?.resolve();
    this.#waiting.delete(mailbox);
    this.#urgent.delete(mailbox);
  }

  /** Removes the mailboxes of a service that asked for a pause. */
  dropService(service: string): void {
    for (const mailbox of this.#due.get(service) ?? []) if (!this.#urgent.has(mailbox)) this.drop(mailbox);
  }

  /** Starts no further polls. */
  close(): void {
    this.#closed = true;
    for (const mailbox of this.#waiting.keys()) this.drop(mailbox);
  }

  #fill(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) this.#start(next);
  }

  #next(): Holder | undefined {
    let best: Holder | undefined;
    const held = (it: Holder) => this.#slots.heldByService(it.service);
    for (const [service, due] of this.#due) {
      const [mailbox] = due;
      if (mailbox === undefined) this.#due.delete(service);
      else if (this.#slots.isFreeFor({ service, mailbox })) {
        const next = { service, mailbox };
        if (best === undefined || held(next) < held(best)) best = next;
      }
    }
    return best;
  }

  #start(holder: Holder): void {
    const { service, mailbox } = holder;
    this.#due.get(service)?.delete(mailbox);
    this.#slots.take(holder);
    const waiting = this.#waiting.get(mailbox);
    this.#waiting.delete(mailbox);
    this.#urgent.delete(mailbox);
    const running = this.#poll(mailbox).finally(() => {
      this.#slots.giveBack(holder);
      this.#running.delete(mailbox);
      waiting?.resolve();
      this.#fill();
    });
    this.#running.set(mailbox, running);
  }
}
