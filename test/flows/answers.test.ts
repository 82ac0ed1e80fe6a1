/**
 * Every operation × every kind of refusal × every situation of a transfer, and the result. The rules repeat those of
 * docs/decisions/026-who-answered.md.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FilePlan, Misbehaviour, Operation } from "../../simulator/scenario.ts";
import { forEachLimit } from "../../src/base/concurrency.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { openTransfer, startAndDeliver } from "../support/one-mailbox.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings } from "../support/settings.ts";

/** Silence is waited out. A busy machine may be slow with all other answers. */
const SILENCE = "silence";
const timeoutOf = (name: string) => (name === SILENCE ? 1_000 : 60_000);

/** `later`: says nothing about the request, and may differ next time. `cut`: a part of it arrived. */
type Meaning =
  | "refused"
  | "password"
  | "locked"
  | "deleted"
  | "foreign"
  | "failed"
  | "later"
  | "cut"
  | "empty";

interface Refusal {
  readonly name: string;
  readonly does: Misbehaviour;
  readonly means: Meaning;
}

const OWN: readonly (readonly [status: number, errorCode: number, means: Meaning])[] = [
  [400, 1002, "refused"],
  [400, 1004, "refused"],
  [400, 1005, "refused"],
  [401, 3002, "refused"],
  [401, 3003, "password"],
  [403, 2005, "locked"],
  [403, 3001, "refused"],
  [403, 3010, "refused"],
  [403, 3011, "refused"],
  [404, 1006, "refused"],
  [404, 2003, "refused"],
  [404, 2004, "refused"],
  [406, 9999, "refused"],
  [409, 9999, "failed"],
  [410, 2006, "deleted"],
  [422, 9999, "refused"],
  [429, 2007, "later"],
  [500, 5000, "failed"],
  [501, 5001, "refused"],
  [501, 5002, "refused"],
];
const PAGES = [200, 400, 401, 403, 404, 405, 406, 409, 410, 422, 429, 500, 501, 502, 503, 504];
const BARE = [200, 204, 400, 403, 404, 500];

const REFUSALS: readonly Refusal[] = [
  ...OWN.map(([status, errorCode, means]) => ({
    name: `${status} with error ${errorCode}`,
    does: { kind: "error", status, errorCode } as const,
    means,
  })),
  ...PAGES.map((status) => ({
    name: `a page with status ${status}`,
    does: { kind: "html", status } as const,
    means: meaningOfStatus(status),
  })),
  ...BARE.map((status) => ({
    name: `nothing but status ${status}`,
    does: { kind: "empty", status } as const,
    means: status < 300 ? ("empty" as const) : meaningOfStatus(status),
  })),
  {
    name: "a redirect to another host",
    does: { kind: "redirect", to: "https://other.example/" },
    means: "foreign",
  },
  { name: "a reset", does: { kind: "reset" }, means: "later" },
  {
    name: "an answer that is cut",
    does: { kind: "truncate", afterBytes: 1, announce: true },
    means: "cut",
  },
  { name: SILENCE, does: { kind: "stall" }, means: "later" },
];

/** Of an answer that is not in the service's format. */
function meaningOfStatus(status: number): Meaning {
  if (status === 429) return "later";
  return status >= 500 && status !== 501 ? "failed" : "foreign";
}

/** One of each meaning and kind. */
const SOME = [...Map.groupBy(REFUSALS, ({ means, does }) => `${means} ${does.kind}`).values()].flatMap(
  ([first]) => first ?? [],
);

interface Situation {
  readonly name: string;
  readonly operation: Operation;
  /** Two by default. */
  readonly files?: number;
  readonly message?: string;
  /** Lists say whether there is a message. */
  readonly isTold?: boolean;
  readonly listChecksum?: FilePlan["listChecksum"];
  /** The final state of the transfer. */
  expected(means: Meaning): string;
}

const FINE = "delivered, message none";
const PERSON = "waiting for a person";
const PASSWORD = "waiting for a password";
const LOCKED = "waiting for the lock";

/** The result of each answer if the operation is needed. */
function whereNeeded(means: Meaning): string {
  return means === "password" ? PASSWORD : means === "locked" ? LOCKED : PERSON;
}

const SITUATIONS: readonly Situation[] = [
  { name: "the list of files", operation: "files", expected: whereNeeded },
  {
    name: "a file",
    operation: "file",
    // A download resumes.
    expected: (means) => (means === "cut" ? FINE : whereNeeded(means)),
  },
  {
    name: "a ZIP of many files",
    operation: "zip",
    files: 20,
    expected: () => FINE,
  },
  {
    name: "checksums, which the list has too",
    operation: "checksums",
    expected: () => FINE,
  },
  {
    name: "checksums, which the list lacks",
    operation: "checksums",
    listChecksum: "missing",
    expected: (means) =>
      means === "empty" ? "quarantined, CHECKSUMS_UNREADABLE" : "quarantined, UNVERIFIABLE",
  },
  { name: "the message, where the list says there is none", operation: "eml", expected: () => FINE },
  {
    name: "the message, where the list says there is one",
    operation: "eml",
    message: "for you alone",
    expected: () => "quarantined, MESSAGE_REFUSED",
  },
  {
    name: "the message, where the list does not say",
    operation: "eml",
    message: "for you alone",
    isTold: false,
    expected: (means) => (means === "refused" || means === "empty" ? FINE : "delivered, message refused"),
  },
];

describe("I7 nothing silent: a request that is refused in every way", () => {
  test.each(SITUATIONS)("$name", async (situation) => {
    const refusals = situation.operation === "files" ? REFUSALS : SOME;
    const [silent, answered] = [true, false].map((isSilent) =>
      outcomesOf(
        situation,
        refusals.filter(({ name }) => (name === SILENCE) === isSilent),
      ),
    );
    const expected = refusals.map(({ name, means }) => `${name}: ${situation.expected(means)}`);
    expect([...((await answered) ?? []), ...((await silent) ?? [])]).toEqual(expected);
  });

  // Each on its own service: after an unclear verdict no password goes to other transfers of the service.
  test("the request that carries the password first", async () => {
    const outcomes: string[] = [];
    const expected = SOME.map(({ name, means }) => {
      const isOpen = ["foreign", "failed", "later", "cut", "empty", "deleted"].includes(means);
      const isOwn = /error|deleted/.test(name) && means !== "deleted";
      return `${name}: ${isOpen && !isOwn ? PASSWORD : whereNeeded(means)}`;
    });
    await forEachLimit(SOME.entries(), 22, async ([at, { name, does }]) => {
      const simulator = await openTestSimulator({
        transfers: [transferPlan({ trackingId: "t1" })],
        faults: [{ on: "info", times: "always", does }],
      });
      const mailbox = mailboxSettings(simulator);
      const service = { ...mailbox.service, timeoutMs: timeoutOf(name) };
      const settings = await daemonSettings([{ ...mailbox, service }]);
      const daemon = startDaemon(settings, { retryMs: 20 });
      const last = () => daemon.changes.findLast(isSettled);
      await expect.poll(last).toBeDefined();
      outcomes[at] = `${name}: ${await describeOutcome(last(), settings.inbox)}`;
      await daemon.stop();
    });
    expect(outcomes).toEqual(expected);
  });
});

test("I7 nothing silent: a message is requested again, however often the transfer has waited for another reason", async () => {
  const { settings } = await openTransfer(
    { message: "for you alone" },
    {},
    {
      showsMessage: false,
      faults: [
        { on: "info", times: 6, does: { kind: "error", status: 503, errorCode: 5000 } },
        { on: "eml", times: 3, does: { kind: "html", status: 502 } },
      ],
    },
  );
  const daemon = await startAndDeliver(settings, { retryMs: 5 });
  const last = daemon.changes.findLast(({ trackingId }) => trackingId === "t1");
  expect(await describeOutcome(last, settings.inbox)).toBe("delivered, message present");
});

/** One transfer for each refusal. */
async function outcomesOf(situation: Situation, refusals: readonly Refusal[]): Promise<string[]> {
  const cells = refusals.map((refusal, at) => ({ refusal, trackingId: `t${at}` }));
  const simulator = await openTestSimulator({
    showsMessage: situation.isTold ?? true,
    transfers: cells.map(({ trackingId }) => planOf(situation, trackingId)),
    faults: cells.map(({ refusal, trackingId }) => ({
      on: situation.operation,
      transfer: trackingId,
      times: "always" as const,
      does: refusal.does,
    })),
  });
  // Each poll reads the records of all transfers.
  const mailbox = mailboxSettings(simulator, { fetch: "auto", pollMs: 2_000 });
  const service = { ...mailbox.service, timeoutMs: Math.min(...refusals.map(({ name }) => timeoutOf(name))) };
  const { limits } = await daemonSettings([]);
  const settings = await daemonSettings([{ ...mailbox, service }], { limits: { ...limits, transfers: 16 } });
  const daemon = startDaemon(settings, { retryMs: 20 });
  const last = (trackingId: string) =>
    daemon.changes.findLast((record) => record.trackingId === trackingId && isSettled(record));
  await expect.poll(() => cells.filter(({ trackingId }) => last(trackingId) === undefined)).toEqual([]);
  await daemon.stop();
  return Promise.all(
    cells.map(async ({ refusal, trackingId }) => {
      return `${refusal.name}: ${await describeOutcome(last(trackingId), settings.inbox)}`;
    }),
  );
}

function planOf({ files = 2, message, listChecksum }: Situation, trackingId: string) {
  const plans: FilePlan[] = Array.from({ length: files }, (_, at) => ({
    name: `f${at}.txt`,
    text: `${trackingId} ${at}`,
    ...(listChecksum === undefined ? {} : { listChecksum }),
  }));
  return transferPlan({ trackingId, files: plans, ...(message === undefined ? {} : { message }) });
}

function isSettled({ state, reason, needsPerson }: TransferRecord): boolean {
  if (state === "waiting") return needsPerson === true || reason === "password" || reason === "locked";
  return state === "delivered" || state === "quarantined" || state === "gone";
}

async function describeOutcome(record: TransferRecord | undefined, inbox: string): Promise<string> {
  const { state, reason, folder = "" } = record ?? {};
  if (state === "waiting") return reason === "password" ? PASSWORD : reason === "locked" ? LOCKED : PERSON;
  if (state !== "delivered") return `${state}, ${reason}`;
  const manifest = JSON.parse(await readFile(join(inbox, folder, "transfer.json"), "utf8")) as {
    message: string;
  };
  return `delivered, message ${manifest.message}`;
}
