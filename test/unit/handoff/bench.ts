/** Hand-offs with real receipts, a real inbox and a clock of the test's own, and what they tell. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type OpenHandoffs, openHandoffs } from "../../../src/handoff/open.ts";
import type { HandoffTools } from "../../../src/handoff/tools.ts";
import { openInbox } from "../../../src/inbox/open.ts";
import type { Receipt } from "../../../src/model/receipt.ts";
import { openReceipts } from "../../../src/receipts/files.ts";
import { HANDOFF_PATIENCE, type HandoffTask, handoffOf } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";
import { watchWith } from "../../support/settings.ts";

/** A machine and its clock: `passMs` moves both, `jumpMs` only the clock. */
class Machine {
  nowMs = Date.parse("2026-03-01T08:00:00.000Z");
  upMs = 1_000_000;

  passMs(ms: number): void {
    this.jumpMs(ms);
    this.upMs += ms;
  }

  jumpMs(ms: number): void {
    this.nowMs += ms;
  }
}

export async function openBench(task: HandoffTask, more: Partial<HandoffTools> = {}) {
  const root = await makeFolder();
  const work = join(root, ".inlet");
  const members = { self: "self", isGone: async () => true, leave: async () => {} };
  const receipts = await openReceipts(work, { alone: true });
  const inbox = await openInbox(root, work, 0, members);
  const machine = new Machine();
  const told: string[] = [];
  const watch = watchWith({
    collected: ({ trackingId }, how) => void told.push(`${trackingId}: ${how}`),
    uncollected: ({ trackingId }) => void told.push(`${trackingId}: uncollected`),
    removed: ({ trackingId }, after) => void told.push(`${trackingId}: removed after ${after}`),
    handedOver: ({ trackingId }, step) => void told.push(`${trackingId}: ${step} done`),
    handoffFailed: ({ trackingId }, step) => void told.push(`${trackingId}: ${step} failed`),
    handoffsStuck: ({ code }) => void told.push(`stuck: ${code}`),
    handoffsGoOn: () => void told.push("going on"),
  });
  const bench = {
    root,
    work,
    machine,
    told,
    receipts,
    inbox,
    watch,
    /** As it is configured now. */
    handoff: handoffOf(task),
    open,
    deliver,
    /** Looks once, as a process that begins anew does. */
    async look() {
      const handoffs = await open();
      await handoffs.finish();
      await handoffs.close();
    },
  };
  const tools: HandoffTools = {
    work,
    isAlone: true,
    owner: "alone",
    isGone: async () => true,
    handoff: () => bench.handoff,
    receipts,
    inbox,
    clock: { now: () => machine.nowMs },
    uptimeMs: () => machine.upMs,
    random: () => 0,
    patience: HANDOFF_PATIENCE,
    watch,
    stop: new AbortController().signal,
    ...more,
  };

  async function open(over: Partial<HandoffTools> = {}): Promise<OpenHandoffs> {
    const handoffs = await openHandoffs({ ...tools, ...over });
    onTestFinished(() => handoffs.close());
    return handoffs;
  }

  /** Makes its folder, its receipt and its hand-off, and returns the folder. */
  async function deliver(trackingId: string, acknowledgement?: string): Promise<string> {
    const key = { mailbox: "m", trackingId };
    const at = (state: string) => ({ [state]: new Date(machine.nowMs).toISOString() });
    const discovered = makeReceipt(key);
    await receipts.create(discovered, undefined);
    const claimed = await receipts.claim(discovered, (it) => ({ ...it, state: "collecting" }));
    if (claimed === undefined) throw new Error("it was claimed before");
    const facts = { folder: `m/${trackingId}`, acknowledgement, at: { ...claimed.at, ...at("delivering") } };
    const delivering: Receipt = { ...claimed, ...facts, state: "delivering" };
    await receipts.put(delivering, claimed);
    const folder = join(root, facts.folder);
    await mkdir(folder, { recursive: true });
    const manifest = { version: 1, trackingId, transferId: claimed.transferId, files: [] };
    await writeFile(join(folder, "transfer.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    const handoffs = await open();
    await handoffs.note(delivering, false);
    await handoffs.close();
    const delivered = { ...delivering.at, ...at("delivered") };
    await receipts.put({ ...delivering, state: "delivered", at: delivered }, delivering);
    return folder;
  }

  return bench;
}
