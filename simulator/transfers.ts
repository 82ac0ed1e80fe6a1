/**
 * The transfers of the simulated service. A transfer is `Processing` at first, then `Active` or `Failed`, until the first of
 * its ends: expiration and planned revocation by the clock, any other end by a call. No end is undone.
 */
import type { Clock } from "../src/base/clock.ts";
import { canonicalAddress } from "../src/model/transfer.ts";
import type { Algorithm } from "./checksums.ts";
import { type Content, contentOf } from "./content.ts";
import { ScenarioError } from "./errors.ts";
import { generatePassword } from "./password-rules.ts";
import type { FilePlan, TransferPlan } from "./scenario.ts";
import { deriveBytes, deriveText } from "./seeded.ts";
import type { Settings } from "./settings.ts";

export type StoredState = "Active" | "Processing" | "Failed" | EndState;

type EndState =
  | "Deleted_by_expiration"
  | "Deleted_by_revocation"
  | "Deleted_by_admin"
  | "Deleted_by_security";

export interface StoredTransfer {
  readonly trackingId: string;
  readonly plan: TransferPlan;
  readonly subject: string;
  readonly algorithm: Algorithm | "none";
  readonly password: string;
  readonly passwordMode: "GENERATED" | "MANUAL" | "NONE";
  readonly createdAtMs: number;
  readonly readyAtMs: number;
  readonly expiresAtMs: number;
  readonly files: readonly StoredFile[];
  readonly messageFileId: string | undefined;
  readonly recipients: readonly StoredRecipient[];
  sender: string;
  readonly ends: { readonly state: EndState; readonly atMs: number }[];
}

export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly plan: FilePlan;
  readonly content: Content;
  readonly announcedBytes: number;
}

export interface StoredRecipient {
  mail: string;
  readonly role: "to" | "cc" | "bcc";
  readonly transferId: string;
  /** By file id: the times of the last downloads. */
  readonly downloads: Map<string, number[]>;
}

/** A transfer and the recipient whose transfer-id opened it. */
export interface OpenedTransfer {
  readonly transfer: StoredTransfer;
  readonly recipient: StoredRecipient;
}

export class Transfers {
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #byTrackingId = new Map<string, StoredTransfer>();
  readonly #byTransferId = new Map<string, OpenedTransfer>();
  #added = 0;

  constructor(settings: Settings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Throws a ScenarioError for a duplicate tracking-id. */
  add(plan: TransferPlan): StoredTransfer {
    this.#added += 1;
    const transfer = storeTransfer(plan, this.#added, this.#settings, this.#clock.now());
    if (this.#byTrackingId.has(transfer.trackingId)) {
      throw new ScenarioError(`trackingId: transfer ${transfer.trackingId} exists already`);
    }
    this.#byTrackingId.set(transfer.trackingId, transfer);
    for (const recipient of transfer.recipients) {
      this.#byTransferId.set(recipient.transferId, { transfer, recipient });
    }
    return transfer;
  }

  find(trackingId: string): StoredTransfer | undefined {
    return this.#byTrackingId.get(trackingId);
  }

  open(transferId: string): OpenedTransfer | undefined {
    return this.#byTransferId.get(transferId);
  }

  /** Oldest first. */
  all(): StoredTransfer[] {
    return [...this.#byTrackingId.values()];
  }

  end(transfer: StoredTransfer, state: EndState): void {
    transfer.ends.push({ state, atMs: this.#clock.now() });
  }

  stateOf(transfer: StoredTransfer): StoredState {
    const nowMs = this.#clock.now();
    if (transfer.plan.failed === true && transfer.readyAtMs <= nowMs) return "Failed";
    const ended = transfer.ends.filter((end) => end.atMs <= nowMs).sort((a, b) => a.atMs - b.atMs);
    return ended[0]?.state ?? (transfer.readyAtMs <= nowMs ? "Active" : "Processing");
  }
}

/** Replaces an address, as after a user asked for the deletion of their data. Returns whether it was found. */
export function replaceAddress(transfer: StoredTransfer, old: string, replacement: string): boolean {
  const wanted = canonicalAddress(old);
  const recipients = transfer.recipients.filter(({ mail }) => canonicalAddress(mail) === wanted);
  for (const recipient of recipients) recipient.mail = replacement;
  const isSender = canonicalAddress(transfer.sender) === wanted;
  if (isSender) transfer.sender = replacement;
  return isSender || recipients.length > 0;
}

export function findRecipient(transfer: StoredTransfer, address: string): StoredRecipient | undefined {
  const wanted = canonicalAddress(address);
  return transfer.recipients.find(({ mail }) => canonicalAddress(mail) === wanted);
}

/** Creates a transfer from its plan and its number. */
export function storeTransfer(
  plan: TransferPlan,
  ordinal: number,
  settings: Settings,
  nowMs: number,
): StoredTransfer {
  const { seed } = settings;
  const expiresAtMs = nowMs + (plan.expiresInSeconds ?? FORTNIGHT_SECONDS) * 1000;
  const ends: StoredTransfer["ends"] = [{ state: "Deleted_by_expiration", atMs: expiresAtMs }];
  if (plan.revokedAfterSeconds !== undefined) {
    ends.push({ state: "Deleted_by_revocation", atMs: nowMs + plan.revokedAfterSeconds * 1000 });
  }
  return {
    trackingId: plan.trackingId ?? `${timestamp(nowMs)}-${deriveText(seed, `tracking ${ordinal}`, 8)}`,
    plan,
    subject: plan.subject ?? "Files for you",
    algorithm: plan.algorithm ?? "SHA-256",
    password: plan.password ?? generatePassword(settings.passwordRules, seed, `transfer ${ordinal}`),
    passwordMode: plan.passwordMode ?? (plan.password === undefined ? "GENERATED" : "MANUAL"),
    createdAtMs: nowMs,
    readyAtMs: nowMs + (plan.processingSeconds ?? 0) * 1000,
    expiresAtMs,
    files: plan.files.map((file, index) => storeFile(file, seed, `${ordinal}.${index}`)),
    messageFileId: plan.message === undefined ? undefined : deriveText(seed, `message ${ordinal}`, 10),
    recipients: (["to", "cc", "bcc"] as const).flatMap((role) =>
      (plan[role] ?? []).map((mail) => ({
        mail,
        role,
        transferId: deriveText(seed, `recipient ${ordinal} ${role} ${canonicalAddress(mail)}`, 10),
        downloads: new Map(),
      })),
    ),
    sender: plan.from,
    ends,
  };
}

const FORTNIGHT_SECONDS = 14 * 86_400;

function storeFile(plan: FilePlan, seed: number, label: string): StoredFile {
  const content = contentOf(plan, deriveBytes(seed, `content ${label}`, 6).readUIntBE(0, 6));
  const id = deriveText(seed, `file ${label}`, 10);
  return { id, name: plan.name, plan, content, announcedBytes: plan.announcedBytes ?? content.bytes };
}

/** The start of a typical tracking-id: `20240524-192513`. */
function timestamp(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15);
}
