/**
 * Operators' orders, as files `orders/NAME~RANDOM.json` below the work folder. No daemon needs to run when an order is
 * given. Every daemon that has the mailbox carries the order out and removes the file. Twice has the same effect as
 * once: a round begins and ends only once.
 */

import { basename, join } from "node:path";
import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { createDurably, makeFolderDurably } from "../base/durable.ts";
import { type Fault, tolerate } from "../base/faults.ts";
import {
  type FolderEvents,
  type FolderWatch,
  readdir,
  readFile,
  unlink,
  watchFolder,
} from "../base/files.ts";
import { randomHex } from "../base/random.ts";
import {
  type MailboxOrder,
  MailboxOrderShape,
  type Order,
  OrderShape,
  type PasswordNotice,
  PasswordNoticeShape,
} from "../model/order.ts";
import { digestOfMailbox } from "../model/transfer.ts";
import { parseJson } from "./format.ts";
import { nameOf } from "./paths.ts";

const Shape = v.intersect([
  v.variant("action", [OrderShape, PasswordNoticeShape, MailboxOrderShape]),
  v.object({ at: v.pipe(v.string(), v.isoTimestamp()) }),
]);

const ENTRY = /^.+~([0-9a-f]{16})\.json$/;

type AnyOrder = Order | PasswordNotice | MailboxOrder;

export interface GivenOrder {
  /** Random, from the name of its file. */
  readonly id: string;
  readonly order: AnyOrder & { readonly at: string };
  /** Called when the order is carried out, or is impossible. May be called twice. */
  remove(): Promise<void>;
}

/** Returns the path of the order's file, which is removed when the order is carried out. */
export async function giveOrder(work: string, order: AnyOrder, nowMs = systemClock.now()): Promise<string> {
  const folder = folderOf(work);
  await makeFolderDurably(folder, 0o700);
  const name = order.trackingId === undefined ? digestOfMailbox(order.mailbox) : nameOf(order);
  const path = join(folder, `${name}~${randomHex(8)}.json`);
  await createDurably(path, `${JSON.stringify({ ...order, at: new Date(nowMs).toISOString() })}\n`);
  return path;
}

/** The id of an order, from the name of its file; `undefined` for another file. */
export function idOfOrder(path: string): string | undefined {
  return ENTRY.exec(basename(path))?.[1];
}

/** Files that are not orders are ignored. Throws the errors of the disk: an order that it does not give is not missing. */
export async function listOrders(work: string): Promise<GivenOrder[]> {
  const folder = folderOf(work);
  const found: GivenOrder[] = [];
  for (const name of ((await readdir(folder).catch(tolerate("ENOENT"))) ?? []).toSorted()) {
    const id = idOfOrder(name);
    if (id === undefined) continue;
    const path = join(folder, name);
    const text = await readFile(path, "utf8").catch(tolerate("ENOENT"));
    const parsed = v.safeParse(Shape, parseJson(text ?? ""));
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
  await unlink(path).catch(tolerate("ENOENT"));
}

function folderOf(work: string): string {
  return join(work, "orders");
}
