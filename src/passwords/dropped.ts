/** The drop folder: passwords that people supply, as files named by tracking-id. */
import { constants } from "node:fs";
import { lstat, open, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { replaceDurably } from "../base/durable.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { Secret } from "../base/secret.ts";

/** Longer than any password that a service accepts. */
const MOST_BYTES = 64 * 1024;

export class DropFolder {
  readonly folder: string;

  constructor(state: string) {
    this.folder = join(state, "passwords");
  }

  /** `undefined` where the tracking-id cannot be the name of a file. */
  pathOf(trackingId: string): string | undefined {
    // Tracking-ids are opaque: one that is no plain file name cannot have a dropped password.
    const plain = /^[^/\0]{1,200}$/.test(trackingId) && !trackingId.startsWith(".");
    return plain ? join(this.folder, trackingId) : undefined;
  }

  /** What was dropped, as far as it can be used. */
  async read(trackingId: string): Promise<Secret | undefined> {
    const path = this.pathOf(trackingId);
    return path === undefined ? undefined : readPassword(path);
  }

  /** Takes this very password away: somebody may have dropped another one since. */
  async takeAway(trackingId: string, password: Secret): Promise<void> {
    if ((await this.read(trackingId))?.reveal() === password.reveal()) await this.clear(trackingId);
  }

  /** Whatever was dropped for it goes. What is no file was not put there as a password, and stays. */
  async clear(trackingId: string): Promise<void> {
    const path = this.pathOf(trackingId);
    if (path === undefined) return;
    await unlink(path).catch((error: NodeJS.ErrnoException) => {
      if (!["ENOENT", "EISDIR", "EPERM"].includes(error.code ?? "")) throw error;
    });
  }

  /** The tracking-ids for which something was dropped. */
  async list(): Promise<string[]> {
    return (await readdir(this.folder)).filter((name) => this.pathOf(name) !== undefined);
  }
}

/** Drops a password as a person would. Returns where; `undefined` where the tracking-id cannot be the name of a file. */
export async function dropPassword(
  state: string,
  trackingId: string,
  password: Secret,
): Promise<string | undefined> {
  const drops = new DropFolder(state);
  const path = drops.pathOf(trackingId);
  if (path === undefined) return undefined;
  await makeFolderDurably(drops.folder, 0o700);
  await replaceDurably(path, password.reveal(), 0o600, drops.folder);
  return path;
}

/** Names what lies there: something else, or the same once more, has another name. `undefined` where nothing does. */
export async function markOf(path: string | undefined): Promise<string | undefined> {
  const facts = path && (await lstat(path, { bigint: true }).catch(() => undefined));
  return facts ? `${facts.ino}-${facts.ctimeNs}` : undefined;
}

/** Only a regular file counts, never what a link leads to; without the line end that editors add. */
export async function readPassword(path: string): Promise<Secret | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > MOST_BYTES) return undefined;
    const text = (await file.readFile("utf8")).replace(/\r?\n$/, "");
    return text === "" ? undefined : new Secret(text);
  } finally {
    await file.close();
  }
}
