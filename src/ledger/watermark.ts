/**
 * Remembers, outside the work folder, the last end record that this installation made. A ledger that lacks this record
 * was restored from an older copy, and would deliver again everything since then.
 */

import { Coalesced } from "../base/concurrency.ts";
import { Fault, systemCode } from "../base/faults.ts";
import { readFile, rm, writeFile } from "../base/files.ts";

const WRITE_AFTER_MS = 5_000;

export class Watermark {
  readonly #path: string;
  readonly #id: string;
  readonly #writing = new Coalesced(() => this.#write(), WRITE_AFTER_MS);
  #unwritten: string | undefined;

  /** `path`: in the state folder. `id`: of the work folder; a watermark of another work folder is ignored. */
  constructor(path: string, id: string) {
    this.#path = path;
    this.#id = id;
  }

  /** The next start expects nothing. */
  async clear(): Promise<void> {
    await rm(this.#path, { force: true });
  }

  /** Written soon, without a sync. The record itself is on the disk already. */
  put(name: string, round: number): void {
    this.#unwritten = `${this.#id} ${name} ${round}\n`;
    this.#writing.schedule();
  }

  /** Retention is about to remove the records of this transfer: the next start must not expect them. */
  async forget(name: string): Promise<void> {
    await this.flush();
    if ((await readMark(this.#path)).split(" ")[1] === name) await this.clear();
  }

  /** Resolves when the watermark is written, or the disk has refused it. */
  flush(): Promise<void> {
    return this.#writing.run();
  }

  async #write(): Promise<void> {
    const text = this.#unwritten;
    this.#unwritten = undefined;
    if (text === undefined) return;
    // The one before stays, and is true.
    await writeFile(this.#path, text, { mode: 0o600 }).catch(() => {});
  }
}

/**
 * What a ledger lacks; `undefined` if it has the record that its watermark names. A damaged watermark is ignored. `about`:
 * identifies the record.
 */
export async function findOlder(
  path: string,
  workId: string,
  ledger: { readEnd(name: string, round: number): Promise<unknown> },
) {
  const [about, id, name, round] = /^(\S+) (\S+) (\d+)\n$/.exec(await readMark(path)) ?? [];
  if (id !== workId || name === undefined || about === undefined) return undefined;
  if ((await ledger.readEnd(name, Number(round))) !== undefined) return undefined;
  return { code: "WORK_RESTORED", about: about.trim(), detail: `it lacks the end of ${name}` } as const;
}

async function readMark(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return "";
    throw new Fault("DISK_UNREADABLE", { detail: path, cause: error });
  });
}
