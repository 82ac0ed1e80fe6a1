/**
 * Several processes share the notices of one channel: each is sent once, and at least once after a crash or a power cut. Each
 * call on the disk, and each message, is a possible switch to another process.
 */
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Notice } from "../../../src/notify/notices.ts";
import { SharedState } from "../../../src/notify/shared-state.ts";
import { ChannelState } from "../../../src/notify/state.ts";
import { StateFiles } from "../../../src/notify/state-files.ts";
import { ModelDisk } from "../../support/model-disk.ts";
import { explore, formatViolation, type Gate, GatedDisk, type Scenario } from "../../support/schedules.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

const FOLDER = "/notify";
const TIMEOUT_MS = 1_800_000;
const LEASE_MS = 60_000;

/** The receiver of the messages, and what it must get. */
class Receiver {
  /** Keys of accepted messages, in order. Ends of troubles have their own. */
  readonly accepted: string[] = [];
  /** Keys that were saved. */
  readonly saved = new Set<string>();

  copy(): Receiver {
    const copy = new Receiver();
    copy.accepted.push(...this.accepted);
    for (const key of this.saved) copy.saved.add(key);
    return copy;
  }

  count(key: string): number {
    return this.accepted.filter((it) => it === key).length;
  }
}

interface ProcessOptions {
  readonly disk: GatedDisk;
  readonly gate: Gate;
  readonly receiver: Receiver;
  readonly nowMs?: number;
  readonly leaseMs?: number;
}

/** A process with one channel, without its timers. */
class Process {
  readonly #shared: SharedState;
  readonly #options: ProcessOptions;
  readonly #unsaved: string[] = [];

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.#shared = new SharedState({
      files: new StateFiles(FOLDER, options.disk),
      isShared: true,
      saveAfterMs: LEASE_MS,
      makeState: (snapshot) => new ChannelState(0, snapshot),
      onChanged: () => {},
    });
  }

  async begin(...keys: string[]): Promise<void> {
    for (const key of keys) this.beginUnsaved(key);
    await this.#shared.save();
    for (const key of this.#unsaved.splice(0)) this.#options.receiver.saved.add(key);
  }

  /** This and the others are saved with the next message. */
  beginUnsaved(key: string): void {
    this.#unsaved.push(key);
    this.#shared.change(({ pending }) => pending.begin(noticeOf(key), this.#shared.token));
  }

  settleUnsaved(key: string): void {
    this.#shared.change(({ pending }) => pending.settle(key));
  }

  endUnsaved(key: string): void {
    this.#options.receiver.saved.delete(key);
    this.#shared.change(({ pending }) => pending.end(overOf(key), this.#shared.token));
  }

  /** Takes over from processes that have ended. False if there is nothing to send. */
  async refresh(): Promise<boolean> {
    const { nowMs = 0, leaseMs = LEASE_MS } = this.#options;
    await this.#shared.run((state) => state.refresh({ by: this.#shared.token, nowMs, leaseMs }));
    return this.#shared.state.pending.size > 0;
  }

  async endEarlier(key: string): Promise<void> {
    await this.#shared.run(({ pending }) => pending.endEarlier(overOf(key)));
  }

  async close(): Promise<void> {
    const { token } = this.#shared;
    this.#shared.change(({ pending }) => pending.release((process) => process === token));
    await this.#shared.save();
  }

  /** Sends what is pending, and returns its keys; `undefined` if another process sends now. */
  async flush(fails = false): Promise<readonly string[] | undefined> {
    const { gate, receiver, nowMs = 0, leaseMs = LEASE_MS } = this.#options;
    const { token } = this.#shared;
    const batch = await this.#shared.run((state) =>
      state.claim({ by: token, nowMs, leaseMs }, ({ pending }) => {
        const selected = pending.select(nowMs, () => true);
        return selected.groups.length > 0 ? selected : undefined;
      }),
    );
    for (const key of this.#unsaved.splice(0)) receiver.saved.add(key);
    if (batch === "by another") return undefined;
    if (batch === undefined) return [];
    const keys = batch.taken.notices.map(({ key }) => key);
    await gate(`${fails ? "fail to send" : "send"} ${keys}`, async () => {
      if (!fails) receiver.accepted.push(...keys);
    });
    const sent = { lastSentMs: nowMs, lastUrgentMs: 0 };
    this.#shared.change((state) => (fails ? state.failed(token) : state.succeeded(token, batch, sent)));
    await this.#shared.save();
    return keys;
  }
}

/** Keys of troubles are upper-case. */
function noticeOf(key: string): Notice {
  const isTrouble = key === key.toUpperCase();
  const trouble = isTrouble ? { isTrouble, isLocal: true } : {};
  return { kind: isTrouble ? "disk" : "password", key, atMs: 0, ...trouble };
}

function overOf(key: string): Notice {
  return { kind: "disk", key, atMs: 0, isOver: true };
}

interface Spec {
  /** One worker for each of these. A worker may have several processes, one after the other. */
  readonly workers: readonly ((start: () => Process) => Promise<void>)[];
  /** How often each key is sent without a crash. */
  readonly times?: Readonly<Record<string, number>>;
  /** Of the workers. */
  readonly leaseMs?: number;
}

function makeScenario(name: string, spec: Spec, kind: typeof GatedDisk = GatedDisk): Scenario {
  return {
    name,
    async start(gate) {
      const disk = await makeDisk();
      const receiver = new Receiver();
      let hasEnded = false;
      const start = () => {
        const { leaseMs = LEASE_MS } = spec;
        return new Process({ disk: new kind(disk, gate), gate, receiver, leaseMs });
      };
      return {
        disk,
        workers: spec.workers.map((run, process) => ({
          name: "ABC"[process] ?? "",
          process,
          run: () => run(start),
        })),
        outside: () => JSON.stringify([receiver.accepted, [...receiver.saved], hasEnded]),
        check: () => undefined,
        react: () => {},
        checkEnd: () => {
          hasEnded = true;
          return undefined;
        },
        restart: (left, afterStep) => restart(left, receiver.copy(), afterStep, spec, hasEnded),
      };
    },
  };
}

async function makeDisk(): Promise<ModelDisk> {
  const disk = new ModelDisk();
  await disk.makeFolder(FOLDER, 0o700);
  return disk.copy();
}

/** A later process finds the rest. */
async function restart(
  left: ModelDisk,
  receiver: Receiver,
  afterStep: () => void,
  { times = {} }: Spec,
  /** Every process has, without a crash. */
  hasEnded: boolean,
): Promise<string | undefined> {
  const gate: Gate = (_, step) => step().finally(afterStep);
  const nowMs = 100 * LEASE_MS;
  const process = new Process({ disk: new GatedDisk(left, gate), gate, receiver, nowMs });
  if (await process.refresh()) await process.flush();
  await process.endEarlier("D");
  await process.flush();
  const missed = [...receiver.saved].find((key) => receiver.count(key) === 0);
  if (missed !== undefined) return `${missed} is missed`;
  const troubles = receiver.accepted.filter((key) => key.startsWith("D"));
  if (troubles.at(-1) === "D") return "the end of D is missed";
  if (!hasEnded) return undefined;
  for (const [key, wanted] of Object.entries(times)) {
    if (receiver.count(key) !== wanted) return `${key} is sent ${receiver.count(key)} times`;
  }
  if (troubles.some((key, at) => key !== ["D", "D over"][at % 2])) return `sent: ${troubles}`;
  const names = left.namesIn(FOLDER);
  return names.length === 1 ? undefined : `left over: ${names}`;
}

const SAME = "two processes notice the same";
const SETTLED = "a notice is settled in another process, and true again";

const SCENARIOS: Readonly<Record<string, Spec>> = {
  [SAME]: {
    workers: ["a", "b"].map((own) => async (start) => {
      const process = start();
      process.beginUnsaved("both");
      process.beginUnsaved(own);
      await process.flush();
    }),
    times: { both: 1, a: 1, b: 1 },
  },
  "one process has ended when another notices the same": {
    workers: [
      async (start) => {
        const [first, second] = [start(), start()];
        first.beginUnsaved("both");
        await first.flush();
        await first.close();
        second.beginUnsaved("both");
        await second.flush();
      },
      async (start) => {
        const process = start();
        await process.begin("both");
        await process.flush();
      },
    ],
    times: { both: 1 },
  },
  "a message fails, and another process has the same and more": {
    workers: [
      async (start) => {
        const process = start();
        process.beginUnsaved("both");
        await process.flush(true);
        await process.flush();
      },
      async (start) => {
        const process = start();
        for (const key of ["both", "b"]) process.beginUnsaved(key);
        await process.flush();
      },
    ],
    times: { both: 1, b: 1 },
  },
  "a process sends and settles what another has just saved": {
    workers: [
      async (start) => {
        await start().begin("once");
      },
      async (start) => {
        const process = start();
        const sent = await process.flush();
        if (sent?.includes("once") !== true) return;
        process.settleUnsaved("once");
        await process.begin("b");
      },
    ],
    times: { once: 1 },
  },
  [SETTLED]: {
    workers: [
      async (start) => {
        const [first, second] = [start(), start()];
        first.beginUnsaved("twice");
        await first.flush();
        second.settleUnsaved("twice");
        second.beginUnsaved("twice");
        await second.flush();
      },
      async (start) => {
        await start().begin("b");
      },
    ],
    times: { twice: 2, b: 1 },
  },
  "a trouble of two processes is notified, and its end": {
    workers: [0, 1].map(() => async (start) => {
      const process = start();
      process.beginUnsaved("D");
      await process.flush();
      process.endUnsaved("D");
      await process.flush();
    }),
  },
  "a process with a trouble ends while another has it too": {
    workers: [
      async (start) => {
        const process = start();
        process.beginUnsaved("D");
        await process.flush();
        await process.close();
      },
      async (start) => {
        const process = start();
        process.beginUnsaved("D");
        await process.flush();
        process.endUnsaved("D");
        await process.flush();
      },
    ],
  },
  "a process is so slow that another takes its message over": {
    workers: ["a", "b"].map((own) => async (start) => {
      const process = start();
      for (const key of ["both", own]) process.beginUnsaved(key);
      await process.flush();
    }),
    leaseMs: 0,
  },
};

beforeEach(() => {
  // Saves that are due later.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  return () => void vi.useRealTimers();
});

describe("each notice is sent once:", () => {
  for (const [name, spec] of Object.entries(SCENARIOS)) {
    test(name, { timeout: TIMEOUT_MS }, async () => {
      const { violation } = await explore(makeScenario(name, spec));
      expect(formatViolation(violation)).toBeUndefined();
    });
  }
});

describe("the exploration finds", () => {
  test("a state that replaces another one", async () => {
    class Replacing extends GatedDisk {
      override link = (from: string, to: string) => this.rename(from, to);
    }
    expect(await violationOf(SCENARIOS[SAME], Replacing)).toMatch(/missed|times/);
  });

  test("a state that is not on the disk before the state before it is removed", async () => {
    class Forgetful extends GatedDisk {
      override syncFolder = () => Promise.resolve();
    }
    expect(await violationOf(SCENARIOS[SETTLED], Forgetful)).toContain("missed");
  });

  test("a message that two processes send at once", async () => {
    const spec = { ...SCENARIOS[SAME], leaseMs: 0 };
    expect(await violationOf(spec)).toBe("after a restart: both is sent 2 times");
  });
});

async function violationOf(spec: Partial<Spec> = {}, kind = GatedDisk): Promise<string | undefined> {
  const { violation } = await explore(makeScenario("hole", { workers: [], ...spec }, kind));
  return violation?.problem;
}
