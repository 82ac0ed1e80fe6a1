/**
 * Orders as files below the work folder: whoever gives one needs no daemon that runs, and one that is carried out is
 * taken away. Carrying one out twice does the same as once.
 */
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { watch as watchFolder } from "chokidar";
import * as v from "valibot";
import { makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { ACTIONS, type Order } from "../model/order.ts";
import { nameOf } from "./places.ts";

const Shape = v.object({ action: v.picklist(ACTIONS), mailbox: v.string(), trackingId: v.string() });

export interface GivenOrder {
  readonly order: Order;
  /** It is carried out, or cannot be. */
  remove(): Promise<void>;
}

/** A later order for the same transfer replaces an earlier one that was not carried out. Returns its path. */
export async function giveOrder(work: string, order: Order): Promise<string> {
  const folder = folderOf(work);
  await makeFolderDurably(folder, 0o700);
  const path = join(folder, `${nameOf(order)}.json`);
  await replaceDurably(path, `${JSON.stringify(order)}\n`, 0o600);
  return path;
}

/** What is not an order is left where it is. */
export async function listOrders(work: string): Promise<GivenOrder[]> {
  const folder = folderOf(work);
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".json"));
  const given = names.map(async (name) => {
    const path = join(folder, name);
    const parsed = v.safeParse(Shape, parseJson(await readFile(path, "utf8").catch(() => "")));
    return parsed.success ? [{ order: parsed.output, remove: () => rm(path, { force: true }) }] : [];
  });
  return (await Promise.all(given)).flat();
}

/** `onGiven` hears that there may be one. */
export async function watchOrders(work: string, onGiven: () => void): Promise<{ close(): Promise<void> }> {
  await makeFolderDurably(folderOf(work), 0o700);
  const watcher = watchFolder(folderOf(work), { depth: 0 });
  watcher.on("add", onGiven).on("change", onGiven);
  // They are looked for now and then too: without a watcher it only takes longer.
  watcher.on("error", () => {});
  return watcher;
}

function folderOf(work: string): string {
  return join(work, "orders");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
