/**
 * The figures of docs/what-the-service-sees.md, counted by the simulated service. If they change, accept the new ones with
 * `npx vitest run --project flows test/flows/service-view.test.ts -u`, and run `npm run docs`.
 */
import { expect, test } from "vitest";
import type { FaultPlan, TransferPlan } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { runOnce } from "../support/daemon.ts";
import { openMailbox } from "../support/one-mailbox.ts";
import { transferPlan } from "../support/service.ts";

const FIXTURE = "../fixtures/service-view";

/** The requests per operation that `work` causes. */
async function count(simulator: Simulator, work: () => Promise<unknown>) {
  const before = simulator.totals();
  await work();
  const after = simulator.totals();
  const of = (...operations: readonly (keyof typeof after)[]) =>
    operations.reduce((sum, operation) => sum + after[operation] - before[operation], 0);
  return { of, all: of(...(Object.keys(after) as (keyof typeof after)[])) };
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return `${lines.join("\n")}\n`;
}

test("the page says how many requests a poll sends", async () => {
  const rows: (string | number)[][] = [];
  // Without a password they stay in the list, and are not downloaded.
  const { simulator, settings } = await openMailbox(
    { passwords: [] },
    { transfers: [], tokenSeconds: 100_000 },
  );
  const poll = async (what: string) => {
    const { of, all } = await count(simulator, () => runOnce(settings));
    const [lists, tokens] = [of("received"), of("verification-token")];
    expect(all).toBe(lists + tokens);
    rows.push([what, lists, tokens, all]);
  };
  const send = async (upTo: number) => {
    for (let at = simulator.transfers().length; at < upTo; at++) {
      simulator.addTransfer(transferPlan({ trackingId: `t${at}`, files: [{ name: "a", text: "a" }] }));
    }
    await runOnce(settings);
  };
  await poll("the first of a mailbox");
  await poll("no active transfer");
  await send(1);
  await poll("1 active transfer");
  await send(100);
  await poll("100 active transfers");
  await send(250);
  await poll("250 active transfers");
  const text = table(["a poll", "requests for lists", "for a token", "in all"], rows);
  await expect(text).toMatchFileSnapshot(`${FIXTURE}/polls.md`);
});

const named = (files: number, bytes: number): TransferPlan["files"] =>
  Array.from({ length: files }, (_, at) => ({ name: `${at}.bin`, generate: { bytes } }));

const LARGE = 2_000_000;
const BREAK = { kind: "reset", afterBytes: 500_000 } as const;

/** Each with the fault that it meets. */
const TRANSFERS: readonly (readonly [what: string, plan: Partial<TransferPlan>, fault?: FaultPlan])[] = [
  ["1 file", { files: named(1, LARGE) }],
  ["3 files", { files: named(3, LARGE) }],
  ["3 files and a confidential message", { files: named(3, LARGE), message: "Hello" }],
  ["3 files, and the connection of one breaks once", { files: named(3, LARGE) }, { on: "file", does: BREAK }],
  ["15 small files", { files: named(15, 1000) }],
  ["16 small files", { files: named(16, 1000) }],
  ["300 small files", { files: named(300, 4000) }],
  [
    "300 small files, and the connection of the ZIP breaks once",
    { files: named(300, 4000) },
    { on: "zip", does: BREAK },
  ],
];

test("the page says how many requests a transfer causes, and how many of them are downloads", async () => {
  const rows: (string | number)[][] = [];
  for (const [what, plan, fault] of TRANSFERS) {
    const { simulator, settings } = await openMailbox({ fetch: "auto" }, { transfers: [] });
    await runOnce(settings);
    simulator.addTransfer(transferPlan({ trackingId: "t1", ...plan }));
    if (fault !== undefined) simulator.addFault(fault);
    const { of, all } = await count(simulator, async () => {
      expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    });
    const [about, message, files, zip] = [of("info", "files", "checksums"), of("eml"), of("file"), of("zip")];
    expect(all).toBe(about + message + files + zip + of("received", "verification-token"));
    rows.push([what, about, message, files, zip, about + message + files + zip, message + files + zip]);
  }
  const head = ["a transfer of", "about it", "message", "files", "ZIP", "requests in all", "downloads"];
  await expect(table(head, rows)).toMatchFileSnapshot(`${FIXTURE}/transfers.md`);
});
