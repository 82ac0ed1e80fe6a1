/** Identifies a delivery to consumers: in the manifest, to the command and to the webhook. */
import { hash } from "node:crypto";

/** `name`: of the transfer in the ledger. Every process derives the same id; a redelivery is another round. */
export function deliveryId(name: string, round: number): string {
  return hash("sha256", `${name}~${round}`, "hex").slice(0, 32);
}
