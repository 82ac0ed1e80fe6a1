/** Services, and proxies in front of them, that answer differently from the simulated one. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Misbehaviour } from "../../simulator/scenario.ts";
import type { Settings } from "../../src/config/settings.ts";
import { LIGHT } from "../../src/mailbox/state.ts";
import type { Status } from "../../src/model/status.ts";
import { readApi } from "../support/api.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { drop, openBehind, openMailbox, rules, startAndDeliver } from "../support/one-mailbox.ts";
import { openFront } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings, pageSettings } from "../support/settings.ts";

const T1 = transferPlan({ trackingId: "t1" });
/** No two mailboxes have the same address. */
const OTHER = "other@example.com";
const isList = ({ pathname }: URL) => pathname.endsWith("received-transfers");
const isActiveList = (url: URL) => isList(url) && url.searchParams.get("active") === "true";
const isLight = ({ searchParams }: URL) => searchParams.get("fields") === LIGHT.fields;
const isInformation = ({ pathname }: URL) => /\/api\/transfers\/[^/]+$/.test(pathname);
const asksForMessages = ({ search }: URL) => search.includes("confidentialMessageFileId");

describe("I3 no burnt transfers", () => {
  test("a locked transfer that left the active list is not requested at each poll", async () => {
    let polls = 0;
    const { front, settings } = await openBehind((url, body) => {
      if (isInformation(url)) return { status: 403, json: { errorCode: 2005, errorMessage: "locked" } };
      if (isActiveList(url)) return polls++ < 2 ? undefined : { json: { data: [] } };
      return isList(url) ? { json: withStates(body, "LOCKED") } : undefined;
    });
    startDaemon(settings, { lockedMs: 600_000 });
    await expect.poll(() => front.seen.filter(isActiveList).length).toBeGreaterThan(12);
    expect(front.seen.filter(isInformation)).toHaveLength(1);
  });

  test.each(["0", "Thu, 01 Jan 2015 00:00:00 GMT"])(
    "a lock with Retry-After %s is waited out",
    async (retryAfter) => {
      const { simulator, settings } = await openMailbox();
      const locked = { kind: "error", status: 423, errorCode: 2005, retryAfter } as const;
      simulator.addFault({ on: "info", times: "always", does: locked });
      startDaemon(settings, { lockedMs: 600_000 });
      await expect.poll(() => simulator.totals().received).toBeGreaterThan(12);
      expect(simulator.totals().info).toBe(1);
    },
  );

  test("a transfer that is locked for several mailboxes of a service is requested once", async () => {
    const names = ["a", "b", "c"].map((name) => `${name}@example.com`);
    const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1", to: names })] });
    const locked = { kind: "error", status: 423, errorCode: 2005 } as const;
    simulator.addFault({ on: "info", times: "always", does: locked });
    const mailboxes = names.map((email) => mailboxSettings(simulator, { name: email, email }));
    const daemon = startDaemon(await daemonSettings(mailboxes), { lockedMs: 600_000 });
    await expect.poll(() => daemon.changes.filter(({ reason }) => reason === "locked")).toHaveLength(3);
    expect(simulator.totals().info).toBe(1);
  });

  test.each([{ errorCode: "" }, { errorCode: 0 }, { errorCode: 504, message: "timeout" }])(
    "%j comes from a gateway, not from the service: the attempt is spent",
    async (json) => {
      const { simulator, settings } = await openBehind(
        (url) => (isInformation(url) ? { status: 504, json } : undefined),
        { passwords: rules("Wr0ng!42") },
      );
      const daemon = startDaemon(settings);
      await expect.poll(() => daemon.changes.at(-1)?.reason).toBe("password");
      expect(simulator.refusedPasswords("t1")).toHaveLength(2);
    },
  );

  test("I4 no leaks: a supplied password reaches only the service of its mailbox, also at the same origin, and without one of two no service", async () => {
    const one = await openTestSimulator({ transfers: [T1] });
    const two = await openTestSimulator({
      transfers: [transferPlan({ trackingId: "t1", to: [OTHER], password: "other:42Xy" })],
    });
    const front = await openFront(one, () => undefined, "/one");
    const beside = await openFront(two, () => undefined, "/two");
    const sameOrigin = { url: front.url, clientId: one.clientId };
    const first = mailboxSettings(sameOrigin, { name: "a", passwords: [] });
    const second = mailboxSettings(beside, { name: "b", email: OTHER, passwords: [] });
    expect(new URL(beside.url).pathname).toBe("/two");
    const settings = await daemonSettings([first, second]);
    await runOnce(settings);
    await drop(settings, "t1", "for whom?");
    const { changes } = await runOnce(settings);
    expect([one, two].flatMap((it) => it.refusedPasswords("t1"))).toEqual([]);
    expect(changes.findLast(({ mailbox }) => mailbox === "a")?.message).toContain("supply it with --mailbox");
    expect(await readdir(join(settings.state, "passwords"))).toEqual(["t1"]);
    await drop(settings, join("a", "t1"));
    const daemon = await runOnce(settings);
    const delivered = daemon.changes.filter(({ state }) => state === "delivered");
    expect(delivered.map(({ mailbox }) => mailbox)).toEqual(["a"]);
    expect(two.refusedPasswords("t1")).toEqual([]);
  });

  test("daemons that are started again and again do not each spend attempts during one outage", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `t${at}`);
    const { simulator, settings } = await openMailbox(
      {},
      { transfers: names.map((trackingId) => transferPlan({ trackingId })) },
    );
    simulator.addFault({ on: "info", times: "always", does: { kind: "html", status: 504 } });
    // The time does not go on, so nothing is due again.
    const clock = { now: () => 1_800_000_000_000 };
    const first = startDaemon(settings, { clock });
    await expect.poll(() => names.filter((id) => first.stateOf(id) === "waiting")).toEqual(names);
    await first.stop();
    for (let round = 0; round < 2; round++) {
      const polls = simulator.totals().received;
      const next = startDaemon(settings, { clock });
      await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
      await next.stop();
    }
    expect(simulator.totals().info).toBeLessThanOrEqual(settings.limits.transfers + 2);
  });

  test("an HTML page as the server status does not block passwords after a lost answer", async () => {
    const { simulator, settings } = await openBehind(({ pathname }) =>
      pathname.endsWith("/status")
        ? { status: 200, text: "<html>", headers: { "content-type": "text/html" } }
        : undefined,
    );
    simulator.addFault({ on: "info", does: { kind: "reset" } });
    await startAndDeliver(settings);
  });
});

describe("a confidential message is not lost", () => {
  const MESSAGE = transferPlan({ trackingId: "t1", message: "for your eyes only" });

  test("if the service has ZIP and message at different paths", async () => {
    const files = [0, 1].map((at) => ({ name: `${at}.txt`, text: "x" }));
    const { settings } = await openBehind(
      ({ pathname }) => {
        const isMissing =
          pathname.endsWith("/files/eml") || /[^s]\/zip$/.test(pathname.replace("/files/zip", ""));
        return isMissing
          ? { status: 404, json: { errorCode: 2003, errorMessage: "no such file" } }
          : undefined;
      },
      { fetch: "zip" },
      { showsMessage: false, transfers: [{ ...MESSAGE, files }] },
    );
    await deliverMessage(settings);
  });

  test.each([
    [
      "a proxy answers 404, and the service refuses the other path",
      { status: 403, json: { errorCode: 3010 } },
    ],
    [
      "a proxy answers 404, and the service does not understand the other path",
      { status: 400, json: { errorCode: 1005 } },
    ],
  ] as const)("where %s", async (_case, refusal) => {
    let asked = 0;
    const { settings } = await openBehind(
      ({ pathname }) => {
        if (pathname.endsWith("/files/eml")) return refusal;
        if (!pathname.endsWith("/eml") || asked++ > 0) return undefined;
        return { status: 404, text: "<html>", headers: { "content-type": "text/html" } };
      },
      {},
      { showsMessage: false, transfers: [MESSAGE] },
    );
    await deliverMessage(settings);
  });

  test.each(["<html>please sign in</html>", '{"errorCode":5000}'])(
    "if %s arrives instead, once",
    async (text) => {
      const { simulator, settings } = await openMailbox({}, { transfers: [MESSAGE] });
      const instead: Misbehaviour = { kind: "body", text, contentType: "application/octet-stream" };
      simulator.addFault({ on: "eml", does: instead });
      await deliverMessage(settings);
    },
  );

  test("if a proxy fails at the first list", async () => {
    const { simulator, front, settings } = await openBehind(() => undefined, {}, { transfers: [MESSAGE] });
    simulator.addFault({ on: "received", does: { kind: "html", status: 404 } });
    await startAndDeliver(settings);
    // While the service rests, a light list comes first.
    const lists = front.seen.filter((url) => isList(url) && !isLight(url));
    expect(lists.every(asksForMessages)).toBe(true);
  });
});

describe("a list", () => {
  test.each([1002, 1004])(
    "is read without undocumented fields if these are answered with error %i",
    async (errorCode) => {
      const refusal = { status: 400, json: { errorCode, errorMessage: "fields" } };
      const { front, settings } = await openBehind((url) => (asksForMessages(url) ? refusal : undefined));
      await startAndDeliver(settings);
      const polls = () => front.seen.filter(isActiveList).length;
      const before = polls();
      await expect.poll(polls).toBeGreaterThan(before + 12);
      // Two polls have found out the same.
      expect(front.seen.filter(asksForMessages)).toHaveLength(4);
    },
  );

  test.each([
    ["its own 500", { status: 500, json: { errorCode: 5000, errorMessage: "no" } }, "SERVER_FAULT"],
    ["a page with 400", { status: 400, text: "<html>" }, "BAD_REQUEST"],
    ["no data", { json: { data: null } }, "BAD_ANSWER"],
    ["nothing", { text: "" }, "BAD_ANSWER"],
  ] as const)(
    "is not read without the wanted fields if these are answered with %s",
    async (_, answer, code) => {
      const { front, settings } = await openBehind((url) => (asksForMessages(url) ? answer : undefined));
      const { reports } = await runOnce(settings);
      expect(reports).toEqual([`orders@example.com: ${code}`]);
      expect(front.seen.filter(isList).every(asksForMessages)).toBe(true);
    },
  );

  test("of transfers that the service does not serve leads to rarer and rarer attempts", async () => {
    const { front, settings } = await openBehind((url, body) => {
      if (isInformation(url)) return { status: 404, json: { errorCode: 2003, errorMessage: "no" } };
      return isList(url) && !isActiveList(url) ? { json: withStates(body, "FAILED") } : undefined;
    });
    const daemon = startDaemon(settings);
    await expect.poll(() => front.seen.filter(isActiveList).length).toBeGreaterThan(20);
    expect(daemon.changes.at(-1)?.round).toBeLessThanOrEqual(2);
  });

  test("with deleted transfers among the active ones starts none of them again", async () => {
    let isDeleted = false;
    const { front, settings } = await openBehind((url, body) => {
      if (isInformation(url)) {
        isDeleted = true;
        return { status: 410, json: { errorCode: 2006, errorMessage: "no" } };
      }
      return isList(url) && isDeleted ? { json: withStates(body, "DELETED_BY_ADMIN") } : undefined;
    });
    const daemon = startDaemon(settings);
    await expect.poll(() => front.seen.filter(isActiveList).length).toBeGreaterThan(20);
    expect(daemon.changes.at(-1)).toMatchObject({ state: "gone", round: 1 });
  });

  test("with an entry that can no longer be decoded ends no transfer, and needs attention", async () => {
    let isOdd = false;
    const { front, settings } = await openBehind(
      (url, body) => {
        if (!isList(url) || !isOdd) return undefined;
        const { data } = JSON.parse(body);
        return { json: { data: data.map((entry: object) => ({ ...entry, status: "odd" })) } };
      },
      { passwords: [] },
      {},
      { http: pageSettings() },
    );
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.changes.at(-1)?.reason).toBe("password");
    isOdd = true;
    const before = front.seen.filter(isActiveList).length;
    await expect.poll(() => front.seen.filter(isActiveList).length).toBeGreaterThan(before + 6);
    expect(daemon.stateOf("t1")).toBe("waiting");
    const status = (await readApi(`${await daemon.page}api/status`)) as Status;
    expect(status.troubles).toMatchObject([{ code: "ENTRIES_UNUSABLE" }]);
    expect(status.totals.attention).toBe(2);
  });

  test("may lack the recipients of a transfer that is still processed", async () => {
    const { settings } = await openBehind((url, body) => {
      if (!isActiveList(url)) return undefined;
      const { data } = withStates(body, "PROCESSING");
      return { json: { data: data.map((entry) => ({ ...entry, status: { state: "PROCESSING" } })) } };
    });
    const daemon = await runOnce(settings);
    expect([daemon.reports, daemon.changes]).toEqual([[], []]);
  });
});

test("I8 bounded: each service has only one transfer with thousands of files in memory", async () => {
  const files = Array.from({ length: 5_001 }, (_, at) => ({ name: `${at}.txt`, text: "x" }));
  const plans = ["t1", "t2"].map((trackingId) => transferPlan({ trackingId, files }));
  const [one, two] = await Promise.all([
    openTestSimulator({ transfers: plans }),
    openTestSimulator({ transfers: [transferPlan({ trackingId: "t3", to: [OTHER], files })] }),
  ]);
  for (const simulator of [one, two])
    simulator.addFault({ on: "file", times: "always", does: { kind: "stall" } });
  const mailboxes = [
    mailboxSettings(one, { name: "a", fetch: "files" }),
    mailboxSettings(two, { name: "b", email: OTHER, fetch: "files" }),
  ];
  const daemon = startDaemon(await daemonSettings(mailboxes), { graceMs: 0 });
  await expect.poll(() => daemon.changes.some(({ reason }) => reason === "large")).toBe(true);
  await expect.poll(() => [one.totals().file > 0, two.totals().file > 0]).toEqual([true, true]);
  const waiting = daemon.changes.filter(({ reason }) => reason === "large");
  expect(new Set(waiting.map(({ mailbox }) => mailbox))).toEqual(new Set(["a"]));
});

test("a deleted transfer whose list cannot be read spends no attempts", async () => {
  let isListed = false;
  const { front, settings } = await openBehind(
    (url, body) => {
      if (isInformation(url)) return { status: 410, json: { errorCode: 2006, errorMessage: "deleted" } };
      if (!isList(url) || isActiveList(url)) return undefined;
      return isListed
        ? { json: withStates(body, "DELETED_BY_SECURITY") }
        : { status: 500, json: { errorCode: 5000, errorMessage: "no" } };
    },
    { pollMs: 3_600_000 },
  );
  const daemon = startDaemon(settings);
  await expect
    .poll(() => daemon.changes.filter(({ state }) => state === "waiting").length)
    .toBeGreaterThan(3);
  expect(front.seen.filter(isInformation)).toHaveLength(1);
  isListed = true;
  await expect.poll(() => daemon.stateOf("t1")).toBe("gone");
});

test("a supplied password and a damaged record do not prevent a start", async () => {
  const { simulator, settings } = await openMailbox();
  await runOnce(settings);
  simulator.addTransfer(transferPlan({ trackingId: "t2" }));
  await runOnce(settings);
  const names = await readdir(join(settings.work, "ledger"), { recursive: true });
  const end = names.find((name) => /\/t1\..*\.end-1\.json$/.test(name)) ?? "";
  await writeFile(join(settings.work, "ledger", end), "damaged");
  await drop(settings, "t1", "late");
  await expect((await runOnce(settings)).outcome).resolves.toBeDefined();
});

function withStates(body: string, state: string) {
  const { data } = JSON.parse(body) as { data: { status: object }[] };
  return { data: data.map((entry) => ({ ...entry, status: { ...entry.status, state } })) };
}

/** The message of the only transfer is delivered. */
async function deliverMessage(settings: Settings): Promise<void> {
  const { folder = "" } = (await startAndDeliver(settings)).changes.at(-1) ?? {};
  expect(await readFile(join(settings.inbox, folder, "message.eml"), "utf8")).toMatch(/^From:/);
}
