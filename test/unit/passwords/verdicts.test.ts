/**
 * I3 no burnt transfers: whatever becomes of the answers to requests that carry passwords, over restarts and with two
 * processes, the service never sees more wrong passwords than allowed, and the right one is never lost for good.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { Secret } from "../../../src/base/secret.ts";
import { coRecipientsAmong } from "../../../src/daemon/workspace.ts";
import { openPasswords } from "../../../src/passwords/passwords.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { MAILBOX, mailboxSettings, plainSecret } from "../../support/settings.ts";
import { oneIn } from "../../support/thorough.ts";

const RIGHT = "the right one";
const BUDGET = 2;
/** A refusal takes a slow hash. */
const RUNS = 240 / oneIn(12);
const HOUR_MS = 60 * 60_000;

/** What happens to a request. `honest`: the service answers. */
const FATES = ["honest", "lost", "garbled", "unsent", "proxy", "failed", "locked"] as const;
type Fate = (typeof FATES)[number];

/** The service has seen the password, and counts it if it is wrong. */
const COUNTED: readonly Fate[] = ["honest", "lost", "garbled"];
const FAULTS: Partial<Record<Fate, ConstructorParameters<typeof Fault>>> = {
  lost: ["CONNECTION_LOST", { answeredBy: "none" }],
  garbled: ["SERVER_FAULT", { answeredBy: "intermediary" }],
  unsent: ["SERVICE_UNREACHABLE", { answeredBy: "unsent" }],
  proxy: ["ACCESS_REFUSED", { answeredBy: "intermediary" }],
  failed: ["SERVER_FAULT", { answeredBy: "service" }],
  locked: ["TRANSFER_LOCKED", { answeredBy: "service" }],
};

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("try" as const),
      fates: fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 4 }),
      isDown: fc.constantFrom(false, false, true),
      worker: fc.nat(1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("both" as const),
      isDown: fc.constant(false),
      fates: fc.array(fc.constantFrom(...FATES), { minLength: 2, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("drop" as const),
      password: fc.constantFrom("dropped wrong", RIGHT),
    }),
  },
);

test("the budget holds for any sequence of answers, and the right password opens the transfer in the end", async () => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.subarray(["rule wrong 1", "rule wrong 2", RIGHT]),
      async (steps, rules) => {
        const { world, ...act } = await openWorld(rules);
        for (const it of steps) {
          world.nowMs += HOUR_MS * 2;
          if (it.kind === "restart") await act.restart();
          else if (it.kind === "drop") await act.drop(it.password);
          else {
            world.fates = [...it.fates];
            world.isDown = it.isDown;
            await (it.kind === "both"
              ? Promise.all([act.attempt(0), act.attempt(1)])
              : act.attempt(it.worker));
          }
          expect(world.wrong).toBeLessThanOrEqual(BUDGET);
          // An attempt that never left costs nothing.
          expect(await act.spent()).toBeLessThanOrEqual(world.sent);
        }
        // Peace again: an operator supplies the right one, and grants one attempt where none is left.
        await act.restart();
        for (let tries = 0; tries < 3 && !world.isOpen; tries++) {
          world.nowMs += HOUR_MS * 2;
          world.fates = [];
          world.isDown = false;
          await act.drop(RIGHT);
          if (!(await act.attempt(0))) await act.grant();
        }
        expect(world.isOpen).toBe(true);
        expect(world.wrong).toBeLessThanOrEqual(BUDGET);
        accepted++;
      },
    ),
    { numRuns: RUNS },
  );
  expect(accepted).toBeGreaterThanOrEqual(RUNS);
}, 300_000);

async function openWorld(rules: readonly string[]) {
  const folder = await makeFolder();
  const state = join(folder, "state");
  const world = {
    nowMs: Date.parse("2026-03-01T00:00:00Z"),
    /** Of the next requests; then the service is honest. */
    fates: [] as Fate[],
    /** How many wrong passwords the service has counted. */
    wrong: 0,
    /** How many requests with a password have left. */
    sent: 0,
    /** No request reaches the service, whatever it carries. */
    isDown: false,
    isOpen: false,
  };
  const rule = { sender: undefined, trackingId: undefined };
  const passwords = rules.map((text) => ({ ...rule, password: plainSecret(text) }));
  const mailbox = mailboxSettings(
    { url: "https://transfer.example.com", clientId: "x" },
    { passwords, passwordAttempts: BUDGET },
  );
  const serviceId = mailbox.service.baseUrl.origin;
  const record = makeRecord({ mailbox: MAILBOX, trackingId: "t1" });
  const clock = { now: () => world.nowMs };
  const openWorker = async (writer: string) => {
    const ledger = await ledgerIn(folder, { writer, clock });
    const parts = {
      state,
      keepMs: undefined,
      clock,
      attempts: ledger.attempts,
      coRecipients: coRecipientsAmong(() => [mailbox], ledger),
    };
    const service = { id: serviceId, answers: 0, ownAnswers: () => service.answers };
    const opened = await openPasswords({ ...parts, nameOf: (key) => ledger.nameOf(key) });
    return { ledger, service, passwords: opened };
  };
  let workers = [await openWorker("a"), await openWorker("b")];
  const spentSoFar = () => (workers[0] ?? fail()).ledger.attempts.spent("t1", "t1", BUDGET);
  const send = async (password: Secret): Promise<string> => {
    const fate = world.isDown ? "unsent" : (world.fates.shift() ?? "honest");
    if (fate !== "unsent") world.sent++;
    const isRight = password.reveal() === RIGHT;
    if (!isRight && COUNTED.includes(fate)) world.wrong++;
    const fault = FAULTS[fate];
    if (fault !== undefined) throw new Fault(...fault);
    if (!isRight) throw new Fault("PASSWORD_REFUSED", { answeredBy: "service" });
    world.isOpen = true;
    return "information";
  };
  const prove = async ({ passwords: own, service }: (typeof workers)[number]) => {
    const request = {
      mailbox,
      service,
      record,
      link: async () => undefined,
      send,
      probe: async () => {
        if (world.isDown) throw new Fault("SERVICE_TIMEOUT", { answeredBy: "none" });
        service.answers++;
      },
      onRefused() {},
    };
    await own.prove(request, SIGNAL).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error;
    });
  };
  return {
    world,
    spent: async () => (await spentSoFar()).spent,
    async restart() {
      workers = [await openWorker("a"), await openWorker("b")];
    },
    async drop(password: string) {
      await mkdir(join(state, "passwords"), { recursive: true });
      await writeFile(join(state, "passwords", "t1"), password);
    },
    /** Whether the transfer is open afterwards. */
    async attempt(worker: number) {
      await prove(workers[worker] ?? fail());
      return world.isOpen;
    },
    async grant() {
      const { ledger } = workers[0] ?? fail();
      const owner = { name: ledger.nameOf(record), round: 1, at: new Date(world.nowMs).toISOString() };
      const { allowed } = await spentSoFar();
      await ledger.attempts.grant("t1", owner, allowed - BUDGET + 1);
    },
  };
}

function fail(): never {
  throw new TypeError("there is no such worker");
}
