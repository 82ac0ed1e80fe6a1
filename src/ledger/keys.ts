/**
 * The keys of mailboxes, as files `mailboxes/N.json` below the work folder. A key names the records and deliveries of an
 * address for ever; what the configuration calls the mailbox is a label. The first file that names an address decides.
 */

import { join } from "node:path";
import * as v from "valibot";
import { createDurably } from "../base/durable.ts";
import { Fault, tolerate } from "../base/faults.ts";
import { readdir, tryReadFile } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import type { Labelled } from "../model/mailbox.ts";
import { canonicalAddress, mailboxIdOf } from "../model/transfer.ts";
import { ledgerPaths } from "./paths.ts";

const Shape = v.record(v.string(), v.string());
const DIGITS = 6;
const FILE = /^\d{6}\.json$/;

/** By the folded address. */
type Keys = ReadonlyMap<string, string>;

/**
 * The mailboxes under their keys. `claimed`: the keys are on the disk when it resolves; `foreseen`: a mailbox without one
 * gets the key that the next start would give it. Throws `RECORD_UNREADABLE`: with wrong keys, everything would be
 * delivered again.
 */
export async function withKeys<Given extends Labelled>(
  work: string,
  mailboxes: readonly Given[],
  how: "claimed" | "foreseen",
): Promise<readonly Given[]> {
  const { mailboxes: folder, temporary } = ledgerPaths(work);
  for (;;) {
    const { known, last } = await readKeys(folder);
    const keys = withNew(known, mailboxes);
    if (how === "foreseen" || keys.size === known.size) {
      return mailboxes.map((mailbox) => {
        const { name, email, label = name } = mailbox;
        return { ...mailbox, name: keys.get(canonicalAddress(email)) ?? name, label };
      });
    }
    const path = join(folder, `${String(last + 1).padStart(DIGITS, "0")}.json`);
    const text = `${JSON.stringify(Object.fromEntries([...keys].slice(known.size)))}\n`;
    // If another process was first, its keys count.
    await createDurably(path, text, temporary).catch(tolerate("TARGET_EXISTS"));
  }
}

/** A new key is what the mailbox is called now, unless another address has it. */
function withNew(known: Keys, mailboxes: readonly Labelled[]): Keys {
  const keys = new Map(known);
  const taken = new Set([...known.values()].map(mailboxIdOf));
  for (const { name, email, label = name } of mailboxes) {
    if (keys.has(canonicalAddress(email))) continue;
    let key = label;
    for (let number = 1; taken.has(mailboxIdOf(key)); number++)
      key = number === 1 ? email : `${email}-${number}`;
    keys.set(canonicalAddress(email), key);
    taken.add(mailboxIdOf(key));
  }
  return keys;
}

async function readKeys(folder: string): Promise<{ readonly known: Keys; readonly last: number }> {
  const known = new Map<string, string>();
  const names = (await readdir(folder).catch(tolerate("ENOENT", "ENOTDIR"))) ?? [];
  const files = names.filter((name) => FILE.test(name)).toSorted();
  for (const path of files.map((file) => join(folder, file))) {
    const keys = parseAs(Shape, await tryReadFile(path));
    if (keys === undefined) throw new Fault("RECORD_UNREADABLE", { detail: path });
    for (const [address, key] of Object.entries(keys)) if (!known.has(address)) known.set(address, key);
  }
  return { known, last: Number.parseInt(files.at(-1) ?? "0", 10) };
}
