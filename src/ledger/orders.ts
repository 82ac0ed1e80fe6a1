/**
 * Operators' orders, as files `orders/NAME~RANDOM.json` below the work folder. No daemon needs to run when an order is
 * given. Every daemon that has the mailbox carries the order out and removes the file. Twice has the same effect as
 * once: a round begins and ends only once.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { createTextDurably, makeFolderDurably } from "../base/durable.ts";
import { type Fault, systemCode } from "../base/faults.ts";
import { type FolderEvents, type FolderWatch, watchFolder } from "../base/watch-folder.ts";
import { ACTIONS, type Order } from "../model/order.ts";
import { parseJson } from "./format.ts";
import { nameOf } from "./paths.ts";

const Shape = v.object({
  action: v.picklist(ACTIONS),
  mailbox: v.string(),
  trackingId: v.string(),
  round: v.number(),
  by: v.string(),
  grants: v.optional(v.number()),
});

const ENTRY = /^.+~[0-9a-f]{16}\.json$/;

export interface GivenOrder {
  /** The name of its file. */
  readonly id: string;
  readonly order: Order;
  /** Called when the order is carried out, or is impossible. May be called twice. */
  remove(): Promise<void>;
}

/** Returns the path of the order's file, which is removed when the order is carried out. */
export async function giveOrder(work: string, order: Order): Promise<string> {
  const folder = folderOf(work);
  await makeFolderDurably(folder, 0o700);
  const path = join(folder, `${nameOf(order)}~${randomBytes(8).toString("hex")}.json`);
  await createTextDurably(path, `${JSON.stringify(order)}\n`);
  return path;
}

/** Files that are not orders are ignored. */
export async function listOrders(work: string): Promise<GivenOrder[]> {
  const folder = folderOf(work);
  const found: GivenOrder[] = [];
  for (const id of (await readdir(folder).catch(() => [])).filter((name) => ENTRY.test(name)).toSorted()) {
    const path = join(folder, id);
    const parsed = v.safeParse(Shape, parseJson(await readFile(path, "utf8").catch(() => "")));
    if (parsed.success) found.push({ id, order: parsed.output, remove: () => remove(path) });
  }
  return found;
}

/** `onGiven` is called when there may be a new order. */
export async function watchOrders(
  work: string,
  onGiven: () => void,
  unwatchable: (fault: Fault) => void,
): Promise<FolderWatch> {
  await makeFolderDurably(folderOf(work), 0o700);
  const changed: FolderEvents["changed"] = (_path, event) => void (event !== "other" && onGiven());
  return watchFolder(folderOf(work), { ignoreInitial: false }, { changed, unwatchable });
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (systemCode(error) !== "ENOENT") throw error;
  });
}

function folderOf(work: string): string {
  return join(work, "orders");
}
