/** What senders send in a world: files with their names, messages, passwords and recipients. */
import { createHash } from "node:crypto";
import { writeZip } from "../../support/zip-writer.ts";
import { START_MS } from "../ground/process.ts";
import type { Random } from "../ground/random.ts";
import type { Taste } from "./happenings.ts";
import type { SentFile, SentTransfer } from "./sent.ts";
import { RULE_PASSWORDS, type Site } from "./site.ts";

const DAY_MS = 24 * 60 * 60_000;

/** Some are spelled so that a rule might miss them. */
const SUBJECTS = ["matter", "matter", "matter", "urgent matter", "urgent matter", "ＵＲＧＥＮＴ"];

const SENDERS = ["anna@a.example", "ben@b.example"];

/** Without a normal form: it might mean anybody. */
const ODD_SENDER = "anna\ud800@a.example";

/** Names that a file system, a shell, another name or Inlet itself cannot bear. */
const ODD_NAMES = [
  "../../etc/passwd",
  ".hidden.txt",
  "-rf.txt",
  "CON.txt",
  "a:b*c?.txt",
  "back\\slash.txt",
  "transfer.json",
  "SHA256SUMS",
  "ok.txt",
  "message.eml",
  "dot at the end.",
  `${"long".repeat(80)}.txt`,
  "line\nbreak.txt",
  "r\u0065\u0301sume\u0301.txt",
  "$(touch x).txt",
];

export function makeTransfer(
  random: Random,
  at: number,
  { boxes }: Site,
  taste: Pick<Taste, "archives" | "oddNames">,
): SentTransfer {
  const [first] = boxes;
  const box = random.chance(0.75) ? first : random.pick(boxes);
  const service = box?.service ?? 0;
  const count = random.weighted({ 1: 4, 2: 4, 3: 1.5, 0: 0.3 });
  const files = distinct(
    Array.from({ length: Number(count) }, (_, number) => makeFile(random, at, number, taste)),
  );
  const others = boxes.filter((each) => each !== box && each.service === service && random.chance(0.7));
  const isRight = random.chance(0.8);
  const isQuick = random.chance(0.08);
  const isPasswordInLink = !isQuick && random.chance(0.08);
  return {
    trackingId: `20260105-08000${at}-t${at + 1}`,
    service,
    sender: random.chance(0.08) ? ODD_SENDER : random.pick(SENDERS),
    subject: random.pick(SUBJECTS),
    recipients: [box?.email ?? "", ...others.map(({ email }) => email)],
    password: isQuick ? "Secret-agreed" : isRight ? (RULE_PASSWORDS[service] ?? "") : `Secret-${at}`,
    ...(isPasswordInLink ? { isPasswordInLink } : {}),
    ...(isQuick ? { securityMode: "QUICK" } : {}),
    ...(random.chance(0.3) ? { messageRow: random.pick(["file", "eml"] as const) } : {}),
    ...(random.chance(0.15) ? { checksums: random.pick(["listed", "csv", "none"] as const) } : {}),
    files,
    message: random.chance(0.25) ? makeMessage(`message ${at}`) : undefined,
    zip: writeZip(files.map(({ name, bytes }) => ({ name, content: bytes, method: 0 }))),
    expiresMs: START_MS + (random.chance(0.05) ? (3 + random.int(10)) * 60_000 : 30 * DAY_MS),
  };
}

/** An EML to which its service may add files. */
function makeMessage(text: string): Buffer {
  const head = 'Subject: hello\r\nContent-Type: multipart/mixed; boundary="part"\r\n';
  return Buffer.from(`${head}\r\n--part\r\nContent-Type: text/plain\r\n\r\n${text}\r\n--part--\r\n`);
}

/** Names are unique within a transfer, as its service compares them. */
function distinct(files: readonly SentFile[]): SentFile[] {
  return files.filter(({ name }, at) => files.findIndex((each) => each.name === name) === at);
}

function makeFile(
  random: Random,
  transfer: number,
  number: number,
  taste: Pick<Taste, "archives" | "oddNames">,
): SentFile {
  const id = `f${transfer}-${number}`;
  const content = Buffer.from(`content ${id} ${"x".repeat(random.int(200))}`);
  if (random.chance(taste.archives)) {
    const members = [{ name: `inner-${number}.txt`, bytes: content }];
    const bytes = writeZip(members.map(({ name }) => ({ name, content, method: 0 })));
    return { id, name: `data-${number}.zip`, bytes, sha256: sha256(bytes), members };
  }
  const usual = random.pick([`report-${number}.txt`, `list-${number}.csv`, "Report-0.TXT"]);
  const name = random.chance(taste.oddNames) ? random.pick(ODD_NAMES) : usual;
  return { id, name, bytes: content, sha256: sha256(content) };
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
