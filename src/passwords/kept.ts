/**
 * Passwords that people supplied and the service accepted. They stay in the state folder for a while,
 * because `retry`, `release` and `redeliver` need them again.
 */
import { hash } from "node:crypto";
import { join } from "node:path";
import * as v from "valibot";
import { systemDisk, tryRead, tryUnlink } from "../base/disk.ts";
import { clearTemporaries, exists, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import { readdir } from "../base/files.ts";
import { Secret } from "../base/secret.ts";
import type { AttemptKey } from "../model/attempts.ts";

const Shape = v.object({ password: v.string(), until: v.string() });

export class KeptPasswords {
  readonly #folder: string;
  /** Known file names, so that `read` looks for no file for most transfers. `has` adds the files of other processes. */
  readonly #names: Set<string>;

  private constructor(folder: string, names: readonly string[]) {
    this.#folder = folder;
    this.#names = new Set(names);
  }

  static async open(state: string, nowMs: number): Promise<KeptPasswords> {
    const folder = folderIn(state);
    await makeFolderDurably(folder, 0o700);
    await clearTemporaries(folder, nowMs);
    return new KeptPasswords(folder, await readdir(folder));
  }

  /** Only to read: makes no folder. */
  static async peek(state: string): Promise<KeptPasswords> {
    const folder = folderIn(state);
    return new KeptPasswords(folder, (await readdir(folder).catch(tolerate("ENOENT"))) ?? []);
  }

  async read(of: AttemptKey): Promise<Secret | undefined> {
    const name = nameOf(of);
    const kept = this.#names.has(name) ? await this.#read(name) : undefined;
    return kept && new Secret(kept.password);
  }

  async keep(of: AttemptKey, password: Secret, untilMs: number): Promise<void> {
    const until = new Date(untilMs).toISOString();
    this.#names.add(nameOf(of));
    const text = JSON.stringify({ password: password.reveal(), until });
    await replaceDurably(join(this.#folder, nameOf(of)), text, 0o600);
  }

  async forget(of: AttemptKey): Promise<void> {
    if (this.#names.delete(nameOf(of))) await tryUnlink(systemDisk, join(this.#folder, nameOf(of)));
  }

  /** Also finds a password that another process has kept. */
  async has(of: AttemptKey): Promise<boolean> {
    const isThere = await exists(join(this.#folder, nameOf(of)));
    if (isThere) this.#names.add(nameOf(of));
    return isThere;
  }

  /** Removes passwords whose time is over. */
  async forgetExpired(nowMs: number): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const kept = await this.#read(name);
      if (kept !== undefined && Date.parse(kept.until) >= nowMs) continue;
      if (kept !== undefined || /^[0-9a-f]{64}$/.test(name))
        await tryUnlink(systemDisk, join(this.#folder, name));
      this.#names.delete(name);
    }
  }

  async #read(name: string): Promise<v.InferOutput<typeof Shape> | undefined> {
    const text = await tryRead(systemDisk, join(this.#folder, name));
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Shape), text);
    return parsed.success ? parsed.output : undefined;
  }
}

function folderIn(state: string): string {
  return join(state, "accepted");
}

function nameOf({ serviceId, trackingId }: AttemptKey): string {
  return hash("sha256", `${serviceId}\0${trackingId}`, "hex");
}
