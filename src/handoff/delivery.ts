/** A delivery as consumers see it, and the key of its outbox entry. */

import type { Delivered } from "../model/handoff.ts";
import { deliveryId } from "../model/manifest.ts";
import type { TransferRecord, Verified } from "../model/record.ts";

/** The end record of a delivery, and what follows from it. */
export interface Delivery extends Omit<TransferRecord, "folder"> {
  /** The same in every attempt to hand it over. */
  readonly id: string;
  readonly folder: string;
  readonly verified: Verified;
  readonly deliveredAt: string;
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
  const { name, round } = parseKey(key);
  const { verified = "none", at } = end;
  return { ...end, id: deliveryId(name, round), round, folder, verified, deliveredAt: at.delivered ?? "" };
}

/** The facts of a delivery that events carry. */
export function eventFactsOf(delivery: Delivered): Delivered {
  const { mailbox, trackingId, round, sender, folder, inbox, deliveredAt, subject, files, bytes } = delivery;
  return { mailbox, trackingId, round, sender, folder, inbox, deliveredAt, subject, files, bytes };
}
