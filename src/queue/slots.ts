/** Slots for jobs, shared fairly between services, then between mailboxes. Used by both engines. */
import type { Services } from "../model/job.ts";

/** A running job's service and mailbox. */
export interface Holder {
  readonly service: string;
  readonly mailbox: string;
}

/**
 * Each service has one slot of its own, and all services share the other `limit - 1`. A slow service may hold every shared
 * slot, but never another service's own. At most `limit - 1` jobs plus one per service run at once.
 */
export class Slots {
  readonly #limit: number;
  readonly #services: Services;
  readonly #byService = new Map<string, number>();
  readonly #byMailbox = new Map<string, number>();
  #held = 0;
  /** Whether a service has several mailboxes, computed once for each `services`. */
  #sharing: { readonly services: ReadonlyMap<string, string>; readonly isShared: boolean } | undefined;

  constructor(limit: number, services: Services) {
    this.#limit = limit;
    this.#services = services;
  }

  /** Mailboxes that are no longer configured count as one service. */
  serviceOf(mailbox: string): string {
    return this.#services().get(mailbox) ?? "";
  }

  heldByService(service: string): number {
    return this.#byService.get(service) ?? 0;
  }

  heldByMailbox(mailbox: string): number {
    return this.#byMailbox.get(mailbox) ?? 0;
  }

  /** The last shared slot is reserved for a mailbox that holds none. */
  isFreeFor({ service, mailbox }: Holder): boolean {
    if (this.heldByService(service) === 0) return true;
    const shared = this.#held - this.#byService.size;
    const free = this.#limit - 1 - shared;
    if (free !== 1) return free > 1;
    return this.heldByMailbox(mailbox) === 0 || !this.#hasMailboxWithoutSlot();
  }

  /** Does not check `isFreeFor`. Each slot taken must be given back. */
  take(holder: Holder): void {
    this.#held++;
    this.#byService.set(holder.service, this.heldByService(holder.service) + 1);
    this.#byMailbox.set(holder.mailbox, this.heldByMailbox(holder.mailbox) + 1);
  }

  giveBack({ service, mailbox }: Holder): void {
    this.#held--;
    lower(this.#byService, service);
    lower(this.#byMailbox, mailbox);
  }

  /** False if each service has one mailbox, which can use the service's own slot. */
  #hasMailboxWithoutSlot(): boolean {
    const services = this.#services();
    if (this.#sharing?.services !== services) {
      this.#sharing = { services, isShared: services.size > new Set(services.values()).size };
    }
    return this.#sharing.isShared && this.#byMailbox.size < services.size;
  }
}

function lower(counts: Map<string, number>, name: string): void {
  const left = (counts.get(name) ?? 0) - 1;
  if (left > 0) counts.set(name, left);
  else counts.delete(name);
}
