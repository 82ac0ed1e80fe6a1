/** Hand-offs with real files, a ledger in memory and a clock of the test's own, and the events that they emit. */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type OpenHandoffs, openHandoffs } from "../../../src/handoff/handoffs.ts";
import type { HandoffTools } from "../../../src/handoff/port.ts";
import { removeDelivered } from "../../../src/inbox/removal.ts";
import { ledgerPaths, nameOf } from "../../../src/ledger/paths.ts";
import { type Emit, type Listeners, listenTo } from "../../../src/model/events.ts";
import { deliveryId } from "../../../src/model/manifest.ts";
import { outboxIn } from "../../../src/model/outbox.ts";
import type { Placement } from "../../../src/model/placement.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { followingWith, HANDOFF_PATIENCE, type HandoffTask, makeHandoff } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

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

/** End records by `NAME~R`, and those whose folder is still staged. */
class Ledger {
  readonly ends = new Map<string, TransferRecord>();
  readonly staged = new Set<string>();
  readonly journal: string[] = [];
  /** Placements by `NAME~R`. */
  readonly placed = new Map<string, Placement>();

  nameOf = nameOf;
  readEnd = async (name: string, round: number) => this.ends.get(`${name}~${round}`);
  isPlaced = async (end: TransferRecord) => !this.staged.has(keyOf(end));
  placements = {
    find: async (end: TransferRecord) => this.placed.get(keyOf(end)),
    folderOf: (end: TransferRecord) => (end.placement === undefined ? undefined : `/work/${keyOf(end)}`),
    forget: async (end: TransferRecord) => void this.placed.delete(keyOf(end)),
  };
  pickedUp = ({ trackingId, folder }: TransferRecord) =>
    void this.journal.push(`${trackingId}: picked up from ${folder}`);

  end(record: TransferRecord): void {
    this.ends.set(keyOf(record), record);
  }
}

export function keyOf(record: TransferRecord): string {
  return `${nameOf(record)}~${record.round}`;
}

export function recordOf(trackingId: string, facts: Partial<TransferRecord> = {}): TransferRecord {
  const at = { delivered: "2026-03-01T08:00:00.000Z" };
  const delivered = {
    state: "delivered",
    folder: `m/${trackingId}`,
    verified: "all",
    attempts: 1,
    at,
  } as const;
  return makeRecord({ trackingId, ...delivered, ...facts });
}

/** Writes a delivered folder, as far as hand-offs read it. */
export async function writeDelivery(root: string, record: TransferRecord, folder = record.folder ?? "") {
  const path = join(root, folder);
  const { trackingId, transferId, round } = record;
  const manifest = {
    version: 1,
    deliveryId: deliveryId(nameOf(record), round),
    trackingId,
    transferId,
    files: [],
  };
  await mkdir(path, { recursive: true });
  await writeFile(join(path, "transfer.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  return path;
}

export async function openBench(task: HandoffTask, more: Partial<HandoffTools> = {}) {
  const root = await makeFolder();
  const work = join(root, ".inlet");
  const staging = join(work, "staging");
  await mkdir(staging, { recursive: true });
  const paths = ledgerPaths(work);
  const machine = new Machine();
  const ledger = new Ledger();
  const told: string[] = [];
  const emit = listenTo({
    "folder-picked-up": ({ delivered, how }) => void told.push(`${delivered.trackingId}: ${how}`),
    "pick-up-overdue": ({ delivered }) => void told.push(`${delivered.trackingId}: overdue`),
    "folder-removed": ({ delivered, after }) => void told.push(`${delivered.trackingId}: removed ${after}`),
    "manifest-changed": ({ delivered, problem }) => void told.push(`${delivered.trackingId}: ${problem}`),
    "folder-left": ({ delivered }) => void told.push(`${delivered.trackingId}: left in place`),
    "handoff-succeeded": ({ delivered, step }) => void told.push(`${delivered.trackingId}: ${step} done`),
    "handoff-failed": ({ delivered, step }) => void told.push(`${delivered.trackingId}: ${step} failed`),
    "handoffs-stuck": ({ fault }) => void told.push(`stuck: ${fault.code}`),
    "handoffs-resumed": () => void told.push("going on"),
    "record-damaged": ({ path }) => void told.push(`damaged: ${path.slice(path.lastIndexOf("/") + 1)}`),
  });
  const bench = {
    root,
    work,
    staging,
    machine,
    ledger,
    told,
    /** Notes events in `told`, and passes them to these listeners too. */
    emitAnd(listeners: Listeners): Emit {
      const other = listenTo(listeners);
      return (event) => {
        emit(event);
        other(event);
      };
    },
    isClockRight: true,
    /** As configured now. */
    handoff: makeHandoff(task),
    open,
    note,
    deliver,
    /** Scans once, as a new process does. */
    async scan(over: Partial<HandoffTools> = {}) {
      const handoffs = await open(over);
      await handoffs.finish();
      await handoffs.close();
    },
    /** The kinds of all entries, by their tracking-ids and rounds. */
    async files() {
      const names = (await readdir(outboxIn(work))).filter((name) => name.includes("~"));
      return names.map((name) => name.replace(/\.[0-9a-f]{32}~/, "~")).toSorted();
    },
    async read(record: TransferRecord, kind: string) {
      return JSON.parse(await readFile(join(outboxIn(work), `${keyOf(record)}.${kind}`), "utf8"));
    },
    /** `undefined` if the hand-off is not finished. */
    async finished(record: TransferRecord) {
      const path = tools.finishedPath(nameOf(record), record.round);
      return existsSync(path) ? JSON.parse(await readFile(path, "utf8")) : undefined;
    },
  };
  const tools: HandoffTools = {
    work,
    isAlone: true,
    handoffOf: () => bench.handoff,
    console: () => undefined,
    ledger,
    finishedPath: (name, round) => paths.handoff(name, round),
    inbox: {
      root,
      isHere: async () => true,
      removeDelivered: (delivery) => removeDelivered(delivery.inbox ?? root, staging, delivery),
    },
    clock: { now: () => machine.nowMs },
    uptimeMs: () => machine.upMs,
    isClockRight: () => bench.isClockRight,
    patience: HANDOFF_PATIENCE,
    emit,
    stop: new AbortController().signal,
    ...more,
  };

  async function open(over: Partial<HandoffTools> = {}): Promise<OpenHandoffs> {
    const handoffs = await openHandoffs({ ...tools, ...over });
    onTestFinished(() => handoffs.close());
    return handoffs;
  }

  /** Creates the entry of a delivery whose round is open. */
  async function note(trackingId: string, facts: Partial<TransferRecord> = {}): Promise<TransferRecord> {
    const at = { delivered: new Date(machine.nowMs).toISOString() };
    const { steps } = followingWith(bench.handoff);
    const record = recordOf(trackingId, { at, steps, ...facts });
    await mkdir(paths.ledgerFolder(nameOf(record)), { recursive: true });
    const handoffs = await open();
    await handoffs.prepare(record);
    await handoffs.close();
    return record;
  }

  /** The same, with its end record and its folder. */
  async function deliver(trackingId: string, facts: Partial<TransferRecord> = {}) {
    const record = await note(trackingId, facts);
    ledger.end(record);
    return { record, folder: await writeDelivery(record.inbox ?? root, record) };
  }

  return bench;
}
