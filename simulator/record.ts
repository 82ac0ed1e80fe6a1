/** A transfer as polls show it: complete to its sender, without the data of others to a recipient. */
import { canonicalAddress } from "../src/model/transfer.ts";
import type { World } from "./call.ts";
import { isSelected, project, type Selection } from "./fields.ts";
import { formatDate } from "./reply.ts";
import type { StoredRecipient, StoredTransfer } from "./transfers.ts";

export type Viewer = { readonly as: "sender" } | { readonly as: "recipient"; readonly address: string };

export async function describeTransfer(
  transfer: StoredTransfer,
  selection: Selection,
  viewer: Viewer,
  world: World,
): Promise<unknown> {
  const { sender, plan } = transfer;
  const seen = visibleRecipients(transfer, viewer);
  const record = {
    trackingId: transfer.trackingId,
    status: {
      sender: { email: sender, notificationFailed: false },
      recipients: seen.map((recipient) => describeRecipient(transfer, recipient, viewer, world)),
      files: transfer.files.map(({ id, plan: { removed } }) => ({
        id,
        removed: removed !== undefined,
        removalCause: removed ?? null,
      })),
      warnings: transfer.files.some((file) => file.plan.removed !== undefined),
      emlCreationFailed: false,
      state: world.transfers.stateOf(transfer),
    },
    transfer: {
      ...(plan.fromName === undefined ? {} : { sender: { name: plan.fromName } }),
      recipients: { to: mailsOf(seen, "to"), cc: mailsOf(seen, "cc"), bcc: mailsOf(seen, "bcc") },
      expirationDate: formatDate(transfer.expiresAtMs),
      fileChecksumAlgorithm: algorithmOf(transfer),
      // Not computed in vain: checksums of large files take long.
      files: isSelected(selection, "transfer", "files") ? await describeFiles(transfer, world) : [],
      ...(world.settings.showsMessage ? { confidentialMessageFileId: transfer.messageFileId ?? null } : {}),
      notificationMessage: { subject: transfer.subject, body: "" },
      securityMode: {
        name: plan.securityMode ?? "ONE_TIME_PASSWORD",
        config: { passwordMode: transfer.passwordMode },
      },
      senderLanguage: "en",
      recipientLanguage: "en",
    },
  };
  return project(record, selection);
}

/** The deprecated, shorter form. */
export function describeBriefly(transfer: StoredTransfer, world: World): unknown {
  const { trackingId, sender, recipients } = transfer;
  return {
    trackingId,
    state: world.transfers.stateOf(transfer),
    recipients: recipients.map(({ mail, transferId }) => ({ mail, id: transferId })),
    href: `/api/users/${encodeURIComponent(sender)}/transfers/${encodeURIComponent(trackingId)}`,
  };
}

/** As the service spells it; empty without checksums. */
export function algorithmOf({ algorithm }: StoredTransfer): string {
  return algorithm === "none" ? "" : algorithm;
}

/** Only the sender and they themselves see bcc recipients. */
function visibleRecipients(transfer: StoredTransfer, viewer: Viewer): readonly StoredRecipient[] {
  return transfer.recipients.filter((recipient) => recipient.role !== "bcc" || isOwn(recipient, viewer));
}

function isOwn(recipient: StoredRecipient, viewer: Viewer): boolean {
  return viewer.as === "sender" || canonicalAddress(recipient.mail) === canonicalAddress(viewer.address);
}

function describeRecipient(
  transfer: StoredTransfer,
  recipient: StoredRecipient,
  viewer: Viewer,
  world: World,
): unknown {
  const { mail, transferId, downloads } = recipient;
  return {
    mail,
    id: transferId,
    ...(isOwn(recipient, viewer) ? { downloadUrl: downloadUrlOf(transfer, transferId, world) } : {}),
    fileDownloads: [...downloads].map(([id, times]) => ({
      id,
      downloads: times.map((atMs) => ({ downloadDate: formatDate(atMs), retrievalMethod: "DOWNLOADED" })),
    })),
    notificationFailed: false,
  };
}

/** The download link, which may carry the password. */
function downloadUrlOf(transfer: StoredTransfer, transferId: string, world: World): string {
  const query = new URLSearchParams({ id: transferId });
  if (transfer.passwordMode === "NONE" && world.settings.noPassword === "link")
    query.set("password", transfer.password);
  const session = world.settings.sessionLinks ? `;jsessionid=${transferId}` : "";
  return `${world.url()}/download${session}?${query}`;
}

function mailsOf(recipients: readonly StoredRecipient[], role: StoredRecipient["role"]): unknown {
  return recipients.filter((recipient) => recipient.role === role).map(({ mail }) => ({ mail }));
}

function describeFiles(transfer: StoredTransfer, world: World): Promise<unknown[]> {
  return Promise.all(
    transfer.files.map(async (file) => ({
      id: file.id,
      fileName: file.name,
      size: file.announcedBytes,
      checksum: await world.checksums.reported(file.content, transfer.algorithm, file.plan.listChecksum),
      state: file.plan.removed === undefined ? "ACTIVE" : "REMOVED",
    })),
  );
}
