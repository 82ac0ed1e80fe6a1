/** A delivery as consumers see it, and the key of its outbox entry. */

import type { Delivered, HandoffStep } from "../model/handoff.ts";
import { deliveryId } from "../model/manifest.ts";
import type { TransferRecord, Verified } from "../model/record.ts";

export interface Delivery extends Delivered {
  /** The same in every attempt to hand it over. */
  readonly id: string;
  readonly transferId: string;
  readonly verified: Verified;
  readonly route: string | undefined;
  readonly rule: string | undefined;
  /** The steps that its end record names. */
  readonly steps: readonly HandoffStep[];
  /** The name of the acknowledgement file. No delivered file has this name. */
  readonly acknowledgement: string | undefined;
}

/** The key of an entry: `NAME~R`. */
export function keyOf(name: string, round: number): string {
  return `${name}~${round}`;
}

export function parseKey(key: string): { readonly name: string; readonly round: number } {
  const at = key.lastIndexOf("~");
  return { name: key.slice(0, at), round: Number(key.slice(at + 1)) };
}

/** `folder`: the real one, where it differs from that of the end record. */
export function deliveryOf(key: string, end: TransferRecord, folder = end.folder ?? ""): Delivery {
  const { mailbox, route, rule, steps = [], trackingId, transferId, sender, inbox } = end;
  const { verified = "none", acknowledgement, at, subject, files, bytes } = end;
  const { name, round } = parseKey(key);
  return {
    id: deliveryId(name, round),
    mailbox,
    route,
    rule,
    steps,
    trackingId,
    round,
    transferId,
    sender,
    folder,
    inbox,
    verified,
    acknowledgement,
    deliveredAt: at.delivered ?? "",
    subject,
    files,
    bytes,
  };
}

/** The facts of a delivery that events carry. */
export function eventFactsOf(delivery: Delivered): Delivered {
  const { mailbox, trackingId, round, sender, folder, inbox, deliveredAt, subject, files, bytes } = delivery;
  return { mailbox, trackingId, round, sender, folder, inbox, deliveredAt, subject, files, bytes };
}
