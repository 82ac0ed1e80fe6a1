/** Compares what a manifest says with what the sender sent, and with the files that a consumer finds. */
import { sha256 } from "../plan/mail.ts";
import { type Circumstances, type Found, OWN } from "./contents.ts";

interface ManifestFile {
  readonly name: string;
  readonly originalName: string;
  readonly size: number;
  readonly sha256: string;
  readonly checksum?: string;
  readonly verified: boolean;
  readonly from?: string;
  readonly deliveredAs?: string;
}

export interface Manifest {
  readonly deliveryId: string;
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly transferId: string;
  readonly recipients?: { readonly to?: readonly string[]; readonly cc?: readonly string[] };
  readonly securityMode?: string;
  readonly passwordMode?: string;
  readonly subject?: string;
  readonly received?: string;
  readonly expires?: string;
  readonly verified: string;
  readonly released?: { readonly by?: string };
  readonly message: string;
  readonly messageFile?: {
    readonly name: string;
    readonly size: number;
    readonly sha256: string;
    readonly deliveredAs?: string;
  };
  readonly files: readonly ManifestFile[];
  readonly unpacked?: readonly {
    readonly originalName: string;
    readonly isDelivered: boolean;
    readonly refused?: string;
  }[];
}

const MESSAGE = "message.eml";

/** `undefined` if there are no bytes, or they are not JSON. */
export function parseManifest(bytes: Buffer | undefined): Manifest | undefined {
  try {
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as Manifest);
  } catch {
    return undefined;
  }
}

/** `found`: the files that the manifest is about, by the names that it gives them. */
export function* checkManifest(
  manifest: Manifest,
  found: Found,
  circumstances: Circumstances,
): Iterable<string> {
  const problems = [
    checkFacts(manifest, circumstances),
    checkListing(manifest, circumstances),
    checkMessage(manifest, circumstances),
    checkListed(manifest, found),
    checkOrigins(manifest, circumstances),
    checkVerified(manifest, circumstances),
  ];
  const { trackingId } = circumstances.transfer;
  for (const what of problems.flatMap((each) => [...each]))
    yield `the manifest of ${trackingId} is wrong: ${what}`;
}

/** What it says of the transfer. */
function* checkFacts(
  manifest: Manifest,
  { transfer, transferId, isReleased, name, receivedByMs }: Circumstances,
): Iterable<string> {
  const { trackingId, sender, subject, expiresMs } = transfer;
  if (manifest.trackingId !== trackingId || manifest.transferId !== transferId) yield "its transfer";
  if (manifest.sender.toWellFormed() !== sender.toWellFormed()) yield `its sender is ${manifest.sender}`;
  if (name.toLowerCase() !== manifest.mailbox.toLowerCase()) yield `its mailbox is ${manifest.mailbox}`;
  if (manifest.subject !== undefined && manifest.subject !== subject.toWellFormed())
    yield `its subject is ${manifest.subject}`;
  if (manifest.expires !== undefined && Date.parse(manifest.expires) !== expiresMs) yield "its expiry";
  if (receivedByMs !== undefined && Date.parse(manifest.received ?? "") > receivedByMs + 1_000)
    yield `it was received before ${manifest.received}`;
  if ((manifest.released !== undefined) !== isReleased)
    yield isReleased ? "it does not say who released it" : "nobody released it";
}

/** To whom it was sent, and how it was protected: as the service says, and only left out where it may not have said it. */
function* checkListing(
  { recipients = {}, securityMode, passwordMode }: Manifest,
  { transfer, mayLackFields, hasNoModes }: Circumstances,
): Iterable<string> {
  const [first, ...others] = transfer.recipients;
  const facts = [
    ["to", recipients.to?.join(), first, false],
    ["cc", recipients.cc?.join(), others.join(), false],
    ["security mode", securityMode, transfer.securityMode ?? "ONE_TIME_PASSWORD", hasNoModes],
    ["password mode", passwordMode, transfer.isPasswordInLink ? "NONE" : "MANUAL", false],
  ] as const;
  for (const [what, said, right, mayBeMissing] of facts) {
    if (said === undefined ? !mayLackFields && !mayBeMissing : said !== right) yield `its ${what} is ${said}`;
  }
}

function* checkMessage(
  { message: said }: Manifest,
  { transfer: { message }, isReleased, isMessageRefused }: Circumstances,
): Iterable<string> {
  if (message === undefined) {
    if (said === "present") yield "it says that there is a message";
    return;
  }
  if (isMessageRefused) return;
  if (said === "none") yield "it says that there is no message";
  if (said === "refused" && !isReleased) yield "it says that the message was refused";
}

/** It names all files that are there, and no other, with their sizes and sums. */
function* checkListed({ files, message, messageFile }: Manifest, found: Found): Iterable<string> {
  const listed = new Map<string, { readonly size: number; readonly sha256: string }>(
    files.map((file) => [file.name, file]),
  );
  if (messageFile !== undefined) listed.set(messageFile.name, messageFile);
  if (message === "present" && !listed.has(MESSAGE)) yield "it does not name the message";
  for (const [name, bytes] of found) {
    if (OWN.has(name)) continue;
    const entry = listed.get(name);
    if (entry === undefined) yield `it does not name ${name}`;
    else if (entry.size !== bytes.length || entry.sha256 !== sha256(bytes))
      yield `${name} has other bytes than it says`;
  }
  for (const name of listed.keys()) if (!found.has(name)) yield `it names ${name}, which is not there`;
}

/** Each file comes from one that was sent, with that one's checksum. */
function* checkOrigins(manifest: Manifest, { transfer, mayBeWrong }: Circumstances): Iterable<string> {
  const { files, checksums } = transfer;
  for (const { from, originalName, verified, sha256: sum, checksum } of manifest.files) {
    const sent = files.find(({ name }) => name === (from ?? originalName));
    if (sent === undefined) {
      yield `nobody sent ${originalName}`;
      continue;
    }
    const isUnpacked = from !== undefined;
    const isSent = isUnpacked || sum === sent.sha256;
    if (verified && (!isSent || checksums === "none")) yield `${originalName} is not verified`;
    if (checksum !== undefined && !isUnpacked && checksum !== sent.sha256 && !mayBeWrong)
      yield `the checksum of ${originalName}`;
  }
}

/** It counts the verified files, which are all if the service has their checksums. */
function* checkVerified(
  manifest: Manifest,
  { transfer: { files, checksums }, isReleased, mayBeWrong }: Circumstances,
): Iterable<string> {
  const verified = manifest.files.filter((file) => file.verified).length;
  const word = verified === 0 ? "none" : verified === manifest.files.length ? "all" : "some";
  if (manifest.verified !== word) yield `it says ${manifest.verified}, and ${word} are verified`;
  const hasAll = checksums !== "none" && files.length > 0;
  if (hasAll && !isReleased && !mayBeWrong && word !== "all")
    yield `${word} are verified, and the service has all checksums`;
}
