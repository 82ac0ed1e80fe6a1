/**
 * Orders as files below the work folder: whoever gives one needs no daemon that runs, and one that is carried out is
 * taken away. `NAME.json` is one that was given, `NAME.json.MEMBER` one that a member has in hand: what is given while
 * an earlier one is carried out stands beside it, and is not lost with it. What a member had in hand when it died, the
 * others take over, who cannot tell how far it came: carrying one out twice must do the same as once.
 */
import { readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { watch as watchFolder } from "chokidar";
import * as v from "valibot";
import { renameDurably, renameNewDurably, replaceDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { ACTIONS, type Order } from "../model/order.ts";
import { nameOf } from "./places.ts";

const Shape = v.object({
  action: v.picklist(ACTIONS),
  mailbox: v.string(),
  trackingId: v.string(),
  fence: v.optional(v.number()),
});
const NAME = /^(.+\.json)(?:\.([0-9a-f]+))?$/;

/** Who takes orders, and can tell who does not live any more. */
export interface OrderTaker {
  readonly self: string;
  isGone(member: string): Promise<boolean>;
}

export interface GivenOrder {
  readonly order: Order;
  /** From now on nobody else has it; `undefined` where somebody was faster. */
  take(): Promise<TakenOrder | undefined>;
}

/** One that is in hand, until one of the two is called; also over a restart. */
interface TakenOrder {
  readonly order: Order;
  /** It is carried out, or cannot be. */
  done(): Promise<void>;
  /** Somebody else has to do it. */
  giveBack(): Promise<void>;
}

/** A later order for the same transfer replaces an earlier one that was not begun. Returns its path. */
export async function giveOrder(work: string, order: Order): Promise<string> {
  const folder = folderOf(work);
  await makeFolderDurably(folder, 0o700);
  const path = join(folder, `${nameOf(order)}.json`);
  await replaceDurably(path, `${JSON.stringify(order)}\n`, 0o600);
  return path;
}

/** Whether the order at this path is still to be carried out, or in hand. */
export async function isPending(path: string): Promise<boolean> {
  const names = await readdir(dirname(path)).catch(() => []);
  return names.some((name) => NAME.exec(name)?.[1] === basename(path));
}

/** What nobody has in hand who lives, and what we have not finished. What is not an order is left where it is. */
export async function listOrders(work: string, taker: OrderTaker): Promise<GivenOrder[]> {
  const folder = folderOf(work);
  const found: GivenOrder[] = [];
  for (const [name, members] of groupByOrder(await readdir(folder).catch(() => []))) {
    const given = join(folder, name);
    const ours = `${given}.${taker.self}`;
    const isNew = members.has("");
    const left: string[] = [];
    for (const member of members) {
      if (member !== "" && member !== taker.self && (await taker.isGone(member)))
        left.push(`${given}.${member}`);
    }
    // A newer one counts, whatever became of those before it.
    const path = isNew ? given : members.has(taker.self) ? ours : left[0];
    const order = path === undefined ? undefined : await readOrder(path);
    if (path === undefined || order === undefined) continue;
    found.push({ order, take: () => take(path, ours, given, left) });
  }
  return found;
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

async function take(
  path: string,
  ours: string,
  given: string,
  left: readonly string[],
): Promise<TakenOrder | undefined> {
  if (path !== ours && !(await isRenamed(path, ours))) return undefined;
  for (const other of left) await rm(other, { force: true });
  const order = await readOrder(ours);
  if (order === undefined) return undefined;
  const done = () => rm(ours, { force: true });
  return {
    order,
    done,
    async giveBack() {
      await renameNewDurably(ours, given).catch((error: unknown) => {
        if (!(error instanceof Fault && error.code === "TARGET_EXISTS")) throw error;
        return done();
      });
    },
  };
}

async function isRenamed(from: string, to: string): Promise<boolean> {
  try {
    await renameDurably(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

/** By the name of the order: who has it in hand, with an empty text for one that was only given. */
function groupByOrder(names: readonly string[]): Map<string, Set<string>> {
  const groups = new Map<string, Set<string>>();
  for (const name of names) {
    const [, order, member = ""] = NAME.exec(name) ?? [];
    if (order !== undefined) groups.set(order, (groups.get(order) ?? new Set()).add(member));
  }
  return groups;
}

async function readOrder(path: string): Promise<Order | undefined> {
  const parsed = v.safeParse(Shape, parseJson(await readFile(path, "utf8").catch(() => "")));
  return parsed.success ? parsed.output : undefined;
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
