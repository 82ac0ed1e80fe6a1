/**
 * Operators' orders, as files `orders/N.json` below the work folder, which are never changed. N is the place in the sequence.
 * No daemon needs to run when an order is given. Every daemon that has the mailbox carries the order out. Twice has the same
 * effect as once: a round begins and ends only once. When nothing can undo its effect, the file is renamed to `N.over`. That
 * of the highest number stays, so that no number is used twice.
 */

import { basename, dirname, join } from "node:path";
import * as v from "valibot";
import { ORDER_BYTES } from "../base/bounds.ts";
import { systemClock } from "../base/clock.ts";
import { createDurably, makeFolderDurably } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import { readdir, readFile, rename, tryLstat, unlink } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { compareTexts } from "../base/phrases.ts";
import {
  type MailboxOrder,
  MailboxOrderShape,
  type Order,
  OrderShape,
  type PasswordNotice,
  PasswordNoticeShape,
} from "../model/order.ts";
import { ledgerPaths } from "./paths.ts";

const Shape = v.intersect([
  v.variant("action", [OrderShape, PasswordNoticeShape, MailboxOrderShape]),
  v.object({ at: v.pipe(v.string(), v.isoTimestamp()) }),
]);

/** Earlier versions named the file by the transfer and a random id. */
const FILE = /^(?:(\d{1,15})\.(?:json|over)|.+~[0-9a-f]{16}\.json)$/;

type AnyOrder = Order | PasswordNotice | MailboxOrder;

export interface GivenOrder {
  /** 0 for an order of an earlier version. */
  readonly number: number;
  /** The same in all lines of the journal. */
  readonly id: string;
  readonly path: string;
  readonly order: AnyOrder & { readonly at: string };
}

/** On the disk when it resolves. */
export async function giveOrder(
  work: string,
  order: AnyOrder,
  nowMs = systemClock.now(),
): Promise<GivenOrder> {
  const { orders } = ledgerPaths(work);
  await makeFolderDurably(orders, 0o700);
  await takeEarlier(work);
  return place(orders, { ...order, at: new Date(nowMs).toISOString() });
}

/** Numbers the orders of an earlier version, before a new order gets a number. */
export async function takeEarlier(work: string): Promise<void> {
  const earlier = (await listOrders(work)).filter(({ number }) => number === 0);
  for (const { order, path } of earlier) {
    await place(ledgerPaths(work).orders, order);
    await remove(path);
  }
}

/**
 * The first to create a number has it. After a pause, the number may have been used: then there is a higher one. Without any,
 * the time is one that is higher than those of a folder that was lost: records name them.
 */
async function place(folder: string, order: GivenOrder["order"]): Promise<GivenOrder> {
  for (let number = 0; ; ) {
    number = Math.max(number, ...(await namesIn(folder)).map(numberOf)) + 1;
    if (number === 1) number = systemClock.now();
    const path = join(folder, `${number}.json`);
    const creating = createDurably(path, `${JSON.stringify(order)}\n`).then(() => true);
    if (!(await creating.catch(tolerate("TARGET_EXISTS")))) continue;
    const later = (await namesIn(folder)).filter((name) => numberOf(name) >= number);
    if (later.length <= 1) return asGiven(path, order);
    await remove(path);
  }
}

/** In their sequence. Other files are ignored. Throws the errors of the disk: an order that it does not give is not missing. */
export async function listOrders(work: string): Promise<GivenOrder[]> {
  const found: GivenOrder[] = [];
  const { orders } = ledgerPaths(work);
  for (const name of await namesIn(orders)) {
    if (!FILE.test(name) || name.endsWith(".over")) continue;
    const path = join(orders, name);
    const facts = await tryLstat(path);
    if (!facts?.isFile() || facts.size > ORDER_BYTES) continue;
    const order = parseAs(Shape, await readFile(path, "utf8").catch(tolerate("ENOENT")));
    if (order !== undefined) found.push(asGiven(path, order));
  }
  return found.toSorted((a, b) => a.number - b.number || compareTexts(a.order.at, b.order.at));
}

/** Nothing can undo its effect, or it is impossible. May be called twice. */
export async function closeOrder({ path, number }: GivenOrder): Promise<void> {
  const folder = dirname(path);
  await rename(path, join(folder, `${number}.over`)).catch(tolerate("ENOENT"));
  const names = await namesIn(folder);
  const highest = Math.max(...names.map(numberOf));
  const isUseless = (name: string) => name.endsWith(".over") && numberOf(name) < highest;
  for (const name of names.filter(isUseless)) await remove(join(folder, name));
}

function asGiven(path: string, order: GivenOrder["order"]): GivenOrder {
  const number = numberOf(basename(path));
  return { number, id: `${number}.${order.at}`, path, order };
}

function numberOf(name: string): number {
  return Number(FILE.exec(name)?.[1] ?? 0);
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(tolerate("ENOENT"))) ?? [];
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch(tolerate("ENOENT"));
}
