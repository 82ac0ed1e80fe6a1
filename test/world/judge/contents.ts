/** What a consumer finds in a delivery, compared with what the sender sent: names, bytes and sums. */
import { sha256 } from "../plan/mail.ts";
import type { SentTransfer } from "../plan/sent.ts";

/** The files of a delivery by name, without its folder. */
export type Found = ReadonlyMap<string, Buffer>;

export interface Circumstances {
  readonly transfer: SentTransfer;
  /** The recipient, and what records call its mailbox. */
  readonly address: string;
  readonly name: string;
  readonly transferId: string;
  /** It was discovered by then; `undefined` if it may have been discovered anew since. */
  readonly receivedByMs: number | undefined;
  /** An operator vouches for the content, whatever it is. */
  readonly isReleased: boolean;
  /** Files may be unpacked from archives. */
  readonly unpack: ReadonlySet<string>;
  /** The service may have sent other bytes for which it had no checksum. */
  readonly mayBeWrong: boolean;
  /** The service itself has refused the message. */
  readonly isMessageRefused: boolean;
  /** Lists may have lacked to whom it was sent, and its modes. */
  readonly mayLackFields: boolean;
  /** The service names no security modes. */
  readonly hasNoModes: boolean;
}

/** The names that Inlet adds. */
export const OWN = new Set(["transfer.json", "SHA256SUMS"]);

/** The sender's files as they are delivered, and the message: their bytes equal what was sent, all of them and no other. */
export function* checkBytes(found: Found, circumstances: Circumstances): Iterable<string> {
  const { transfer, isReleased, mayBeWrong } = circumstances;
  if (isReleased || mayBeWrong) return;
  const { trackingId } = transfer;
  const sums = [...found]
    .filter(([name]) => !OWN.has(name))
    .map(([, bytes]) => sha256(bytes))
    .toSorted();
  const wanted = wantedSums(circumstances);
  if (!wanted.some((each) => each.toSorted().join() === sums.join()))
    yield `I1: ${trackingId} appears with other content`;
}

/** Each way in which the content may come: archives as they are, unpacked, or both; the message may be refused. */
function wantedSums({ transfer: { files, message }, unpack, isMessageRefused }: Circumstances): string[][] {
  const ways = files.map(({ sha256: sum, members = [] }) => {
    const inner = members.map(({ bytes }) => sha256(bytes));
    if (inner.length === 0) return [[sum]];
    return [
      [sum],
      ...(unpack.has("instead") ? [inner] : []),
      ...(unpack.has("beside") ? [[sum, ...inner]] : []),
    ];
  });
  const all = ways.reduce<string[][]>(
    (some, next) => some.flatMap((one) => next.map((each) => [...one, ...each])),
    [[]],
  );
  if (message === undefined) return all;
  const whole = all.map((each) => [...each, sha256(message)]);
  return isMessageRefused ? [...all, ...whole] : whole;
}

const UNSAFE = /[/\\:*?"<>|\p{Cc}]|^[.-]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/iu;
/** Stays as it is. */
const PLAIN = /^[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]{3}$/i;

/** Of Inlet, and of the hand-offs of worlds. */
const RESERVED = new Set(["transfer.json", "message.eml", "reason.json", "ok.txt"]);

/** Names are safe everywhere, differ in more than case and form, and stay as they are if they can. */
export function* checkNames(
  names: Iterable<string>,
  { transfer }: Circumstances,
  originals?: ReadonlyMap<string, string>,
): Iterable<string> {
  const seen = new Set<string>();
  for (const name of names) {
    const folded = name.normalize("NFC").toLowerCase();
    if (seen.has(folded)) yield `${transfer.trackingId}: two names differ only in case or form: ${name}`;
    seen.add(folded);
    if (UNSAFE.test(name) || Buffer.byteLength(name) > 255)
      yield `${transfer.trackingId}: the name ${JSON.stringify(name)} is not safe`;
    const original = originals?.get(name);
    const isAlone =
      transfer.files.filter((file) => file.name.toLowerCase() === original?.toLowerCase()).length === 1;
    const isFree =
      original !== undefined &&
      PLAIN.test(original) &&
      !UNSAFE.test(original) &&
      original.length < 200 &&
      !RESERVED.has(original);
    if (isFree && isAlone && name !== original) {
      yield `${transfer.trackingId}: the name ${original} became ${name}`;
    }
  }
}

/** `pathOf`: from the folder of the sums. */
export function* checkSums(
  text: string,
  found: Found,
  trackingId: string,
  pathOf = (name: string) => name,
): Iterable<string> {
  const wanted = [...found]
    .filter(([name]) => !OWN.has(name))
    .map(([name, bytes]) => `${sha256(bytes)}  ${pathOf(name)}`);
  const lines = text.split("\n").filter((line) => line !== "");
  if (lines.toSorted().join("\n") !== wanted.toSorted().join("\n"))
    yield `the sums of ${trackingId} are wrong`;
}
