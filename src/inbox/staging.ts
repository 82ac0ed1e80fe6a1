/**
 * Where transfers are put together: `KEY/FENCE-MEMBER/`, one folder per claim, so that two who work on one transfer
 * never write into the same file. What another one left is taken over by renaming its folder: only from one that is
 * provably gone, or where it was finished and closed. Whose folder was renamed finds nothing there to deliver.
 */
import { mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { exists, faultOfDisk } from "../base/durable.ts";
import { systemCode } from "../base/system-code.ts";
import type { Members } from "./members.ts";
import type { Stage } from "./port.ts";

interface Found {
  readonly name: string;
  readonly fence: number;
  readonly member: string;
}

export class Staging {
  readonly #root: string;
  readonly #members: Members;
  /** Folders in which somebody in this process works. */
  readonly #used = new Set<string>();

  constructor(root: string, members: Members) {
    this.#root = root;
    this.#members = members;
  }

  async take(key: string, fence: number, finished: boolean): Promise<Stage> {
    const home = join(this.#root, key);
    const folder = join(home, `${fence}-${this.#members.self}`);
    this.#used.add(folder);
    try {
      const isNew = (await mkdir(home, { recursive: true, mode: 0o700 })) !== undefined;
      if (!isNew) await this.#takeOver(home, folder, fence, finished);
      await mkdir(folder, { recursive: true, mode: 0o700 });
    } catch (error) {
      this.#used.delete(folder);
      throw faultOfDisk(error, folder);
    }
    return {
      folder,
      release: () => void this.#used.delete(folder),
      clear: () => this.#clear(home, folder, fence),
    };
  }

  /** The newest of those that may be taken; older ones that nobody can write to any more go. */
  async #takeOver(home: string, folder: string, fence: number, finished: boolean): Promise<void> {
    if (await exists(folder)) return;
    const found = (await readdir(home)).flatMap(parse).filter((it) => it.fence < fence);
    let isTaken = false;
    for (const [place, it] of found.toSorted((a, b) => b.fence - a.fence).entries()) {
      const path = join(home, it.name);
      const isFinished = finished && place === 0;
      if (!isFinished && !(await this.#isGone(it, path))) continue;
      if (isTaken) await rm(path, { recursive: true, force: true });
      else await rename(path, folder);
      isTaken = true;
    }
  }

  /** What a later claim has begun is not ours to take: its content being gone would look like a delivery. */
  async #clear(home: string, folder: string, fence: number): Promise<void> {
    // Usually all of it was delivered, and nobody else has ever been here.
    if ((await isRemoved(folder)) && (await isRemoved(home))) return;
    const found = (await readdir(home)).flatMap(parse).filter((it) => it.fence <= fence);
    for (const { name } of found) await rm(join(home, name), { recursive: true, force: true, maxRetries: 3 });
    await isRemoved(home);
  }

  async #isGone({ member }: Found, path: string): Promise<boolean> {
    return member === this.#members.self ? !this.#used.has(path) : this.#members.isGone(member);
  }
}

/** False where something is in it. */
async function isRemoved(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return true;
    if (systemCode(error) === "ENOTEMPTY") return false;
    throw error;
  }
}

function parse(name: string): Found[] {
  const [, fence, member] = /^(\d+)-([0-9a-f]+)$/.exec(name) ?? [];
  return fence === undefined || member === undefined ? [] : [{ name, fence: Number(fence), member }];
}
