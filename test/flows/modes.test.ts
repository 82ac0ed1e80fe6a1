/** Security modes, states and message rows, as real services have them. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Misbehaviour, Scenario, TransferPlan } from "../../simulator/scenario.ts";
import type { Settings } from "../../src/config/settings.ts";
import { WANTED_FIELDS } from "../../src/mailbox/list-fields.ts";
import type { Status } from "../../src/model/status.ts";
import { peekStatus } from "../../src/operate/status.ts";
import { readApi } from "../support/api.ts";
import { callCommand } from "../support/command.ts";
import { runOnce, startDaemon } from "../support/daemon.ts";
import { install } from "../support/installation.ts";
import { openBehind, openMailbox, openTransfer, order, startAndDeliver } from "../support/one-mailbox.ts";
import { transferPlan } from "../support/service.ts";
import { PASSWORD, pageSettings } from "../support/settings.ts";

const BURNS = { wrongPasswords: { limit: 1, reaction: "delete" } } as const;

describe("I3 no burnt transfers: a transfer of another security mode", () => {
  test.each<readonly [string, Partial<TransferPlan>, Partial<Scenario>]>([
    ["QUICK, and a rule", { securityMode: "QUICK", password: "agreed 42" }, {}],
    ["of an ID provider, and a rule with the right password", { securityMode: "ID_PROVIDER" }, {}],
    ["a password in the link", { securityMode: "QUICK", passwordMode: "NONE" }, {}],
    ["no password at all", { securityMode: "QUICK", passwordMode: "NONE" }, { noPassword: "open" }],
    ["where other fields are refused", { securityMode: "QUICK" }, { otherFields: "refuse" }],
  ])("waits for a person: %s", async (_name, plan, scenario) => {
    const { simulator, settings } = await openTransfer(plan, {}, { ...BURNS, ...scenario });
    const { changes } = await runOnce(settings);
    expect(simulator.totals().info).toBe(0);
    expect(changes.at(-1)).toMatchObject({
      state: "waiting",
      reason: "mode",
      code: "SECURITY_MODE",
      message: expect.stringMatching(/"(QUICK|ID_PROVIDER)".* inlet password t1/),
    });
  });

  test("is shown with its reason everywhere, and one password for many is not for it", async () => {
    const plan = transferPlan({ trackingId: "t1", securityMode: "QUICK" });
    const { config, simulator } = await install({ ...BURNS, transfers: [plan] });
    const inlet = (...args: string[]) => callCommand([...args, "--config", config]);
    expect((await inlet("once", "--dry-run")).stdout).toContain("its security mode is QUICK");
    expect((await inlet("once")).outcome).toBe("attention");
    const [listed, shown] = [await inlet("list", "--json"), await inlet("show", "t1")];
    expect(JSON.parse(listed.stdout)).toMatchObject({ state: "waiting", reason: "mode" });
    expect(shown.stdout).toContain(
      'Inlet sends no password by itself to a transfer with this security mode: "QUICK"',
    );
    expect(shown.stdout).toContain("inlet password t1");
    const file = `${config}.password`;
    await writeFile(file, PASSWORD);
    const all = await inlet("password", "--all", "--sender", "*", "--yes", "--password-file", file);
    expect(all.stderr).toContain("No transfer");
    expect(simulator.totals().info).toBe(0);
  });

  test("keeps the mode that was listed first, whatever later lists say", async () => {
    const { simulator, settings } = await openTransfer({ securityMode: "QUICK" }, {}, BURNS);
    await runOnce(settings);
    const path = "data.0.transfer.securityMode";
    for (const does of [{ value: { name: "ONE_TIME_PASSWORD" } }, {}]) {
      simulator.clearFaults();
      simulator.addFault({ on: "received", times: "always", does: { kind: "alter", path, ...does } });
      await runOnce(settings);
    }
    expect(simulator.totals().info).toBe(0);
  });
});

describe("I3 no burnt transfers: a mode that no list gives is unknown", () => {
  const [T0, T1] = ["t0", "t1"].map((trackingId) => transferPlan({ trackingId }));
  const QUICK = transferPlan({ trackingId: "t1", securityMode: "QUICK", password: "agreed 42" });
  const isList = ({ pathname }: URL) => pathname.endsWith("received-transfers");
  const isAlone = ({ search }: URL) => search.includes("fields=trackingId%2Ctransfer%28securityMode%29");
  const isAskedAlone = (url: URL) => isAlone(url) && url.searchParams.get("page") === "1";

  type Entry = { trackingId: string; transfer?: Record<string, unknown> };
  /** Behind an intermediary that changes entries. `loses`: whether it does so with an entry of this list. */
  const openLossy = (loses: (trackingId: string, url: URL) => boolean, field = "securityMode") => {
    const rewrite = (url: URL, body: string) => {
      if (!isList(url) || !body.startsWith('{"data"')) return undefined;
      const data = (JSON.parse(body).data as Entry[]).map(({ transfer, ...entry }) => {
        const { [field]: _, ...kept } = transfer ?? {};
        return { ...entry, transfer: loses(entry.trackingId, url) ? kept : transfer };
      });
      return { json: { data } };
    };
    return openBehind(rewrite, {}, { ...BURNS, transfers: [T0 as TransferPlan] }, { http: pageSettings() });
  };
  const withAnswer = (settings: Settings, rulesWithoutMode: boolean): Settings => ({
    ...settings,
    mailboxes: settings.mailboxes.map((mailbox) => ({ ...mailbox, rulesWithoutMode })),
  });

  test.each<readonly [string, Misbehaviour]>([
    ["error pages", { kind: "html", status: 500 }],
    ["cut connections", { kind: "reset" }],
    ["a firewall's 403", { kind: "html", status: 403 }],
    ["a firewall's 400", { kind: "html", status: 400 }],
    ["the service's own error about something else", { kind: "error", status: 500, errorCode: 5000 }],
    ["the service's own 404", { kind: "error", status: 404, errorCode: 2003 }],
  ])("three lists fail with %s: nothing less is asked for", async (_, does) => {
    const { simulator, front, settings } = await openLossy(() => false);
    await runOnce(settings);
    simulator.addTransfer(QUICK);
    simulator.addFault({ on: "received", times: 3, does });
    for (let round = 0; round < 4; round++) await runOnce(settings);
    expect(simulator.totals().info).toBe(1);
    const fields = front.seen.filter(isList).map(({ searchParams }) => searchParams.get("fields"));
    expect(new Set(fields)).toEqual(new Set([WANTED_FIELDS]));
  });

  test("the service's own word about the fields leaves out one group after the other, the mode last", async () => {
    const { simulator, front, settings } = await openLossy(() => false);
    simulator.addFault({
      on: "received",
      times: 3,
      does: { kind: "error", status: 400, errorCode: 1004 },
    });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t0")).toBe("delivered");
    const polls = () => front.seen.filter(isList).map(({ search }) => decodeURIComponent(search));
    expect(
      polls()
        .slice(0, 4)
        .map((it) => it.replace(/.*transfer\(|[^a-z]*$/gi, "")),
    ).toEqual([
      "notificationMessage(subject),confidentialMessageFileId,securityMode(name,config(passwordMode)),recipients(to,cc),expirationDate",
      "confidentialMessageFileId,securityMode(name,config(passwordMode)),recipients(to,cc),expirationDate",
      "securityMode(name,config(passwordMode)),recipients(to,cc),expirationDate",
      "recipients(to,cc),expirationDate,securityMode",
    ]);
    // It was refused in one poll only.
    await expect.poll(() => polls().at(-1)).toContain("notificationMessage");
  });

  test("an intermediary that takes it out of one list: it is asked for once more, alone", async () => {
    const { simulator, front, settings } = await openLossy((id, url) => id === "t1" && !isAlone(url));
    await runOnce(settings);
    simulator.addTransfer(QUICK);
    const daemon = await runOnce(settings);
    expect(daemon.changes.at(-1)).toMatchObject({ reason: "mode", securityMode: "QUICK" });
    expect(front.seen.filter(isAskedAlone)).toHaveLength(1);
    expect(simulator.totals().info).toBe(1);
  });

  test("an intermediary that always takes it out: one trouble for the service, until a person answers", async () => {
    const { simulator, settings } = await openLossy((id) => id !== "t0");
    await runOnce(settings);
    for (const trackingId of ["t1", "t2", "t3"]) simulator.addTransfer({ ...QUICK, trackingId });
    const daemon = startDaemon(settings);
    await expect
      .poll(() => daemon.changes.filter(({ reason }) => reason === "no-mode").length)
      .toBeGreaterThanOrEqual(3);
    const read = async () => (await readApi(`${await daemon.page}api/status`)) as Status;
    await expect.poll(async () => (await read()).troubles).toMatchObject([{ code: "MODE_UNKNOWN" }]);
    expect((await read()).totals).toMatchObject({ attention: 0, queued: 3 });
    expect((await read()).troubles[0]?.advice).toContain("service.rulesWithoutMode");
    expect((await peekStatus(settings)).troubles).toMatchObject([{ code: "MODE_UNKNOWN" }]);
    await daemon.reload(withAnswer(settings, false));
    await expect.poll(async () => (await read()).totals.attention).toBe(3);
    expect((await read()).troubles).toEqual([]);
    expect(simulator.totals().info).toBe(1);
    await daemon.reload(withAnswer(settings, true));
    await expect.poll(() => simulator.totals().info).toBeGreaterThan(1);
  });

  test("a mode that arrives later counts, and the trouble is over", async () => {
    let loses = true;
    const { simulator, settings } = await openLossy((id) => id === "t1" && loses);
    await runOnce(settings);
    simulator.addTransfer(T1 as TransferPlan);
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.changes.at(-1)?.reason).toBe("no-mode");
    loses = false;
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(((await readApi(`${await daemon.page}api/status`)) as Status).troubles).toEqual([]);
  });

  test("a service that has never named one has none: rules apply, and a restart need not find it out again", async () => {
    let isOld = true;
    const { simulator, front, settings } = await openLossy((id) => isOld || id === "t2");
    expect((await runOnce(settings)).stateOf("t0")).toBe("delivered");
    expect(front.seen.filter(isAskedAlone)).toHaveLength(3);
    simulator.addTransfer(T1 as TransferPlan);
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    expect(front.seen.filter(isAskedAlone)).toHaveLength(3);
    // Once it has named one, a missing one is unknown, also after a restart.
    isOld = false;
    await runOnce(settings);
    isOld = true;
    simulator.addTransfer({ ...QUICK, trackingId: "t2" });
    expect((await runOnce(settings)).changes.at(-1)).toMatchObject({ reason: "no-mode" });
  });

  test("what is known of one version of a service does not count for another one", async () => {
    const { simulator, front, settings } = await openLossy(() => true);
    await runOnce(settings);
    simulator.addFault({
      on: "status",
      times: "always",
      does: { kind: "alter", path: "apiVersions.uiApiVersions.0.minor", value: 99 },
    });
    simulator.addTransfer(T1 as TransferPlan);
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    expect(front.seen.filter(isAskedAlone)).toHaveLength(6);
  });

  test("I7 nothing silent: three lists that fail hide no message that the service refuses", async () => {
    const { simulator, settings } = await openLossy(() => false);
    await runOnce(settings);
    simulator.addTransfer(transferPlan({ trackingId: "t1", message: "for you alone" }));
    simulator.addFault({ on: "received", times: 3, does: { kind: "html", status: 500 } });
    const refuses = { kind: "error", status: 403, errorCode: 3010 } as const;
    simulator.addFault({ on: "eml", times: "always", does: refuses });
    for (let round = 0; round < 4; round++) await runOnce(settings);
    expect((await peekStatus(settings)).attention).toMatchObject([
      { trackingId: "t1", reason: "MESSAGE_REFUSED" },
    ]);
  });

  test("I7 nothing silent: without the mark of a message, the message is asked for", async () => {
    const { simulator, settings } = await openLossy((id) => id === "t1", "confidentialMessageFileId");
    await runOnce(settings);
    simulator.addTransfer(transferPlan({ trackingId: "t1", message: "for you alone" }));
    const { folder = "" } = (await runOnce(settings)).changes.at(-1) ?? {};
    const manifest = JSON.parse(await readFile(join(settings.inbox, folder, "transfer.json"), "utf8"));
    expect(manifest).toMatchObject({ trackingId: "t1", message: "present" });
  });
});

describe("I3 no burnt transfers: a transfer that the service opens only in a browser", () => {
  const waiting = { state: "waiting", reason: "browser", code: "BROWSER_ONLY", needsPerson: true };

  test.each<readonly [unsupported: "QUICK" | "eID", plan: Partial<TransferPlan>]>([
    ["QUICK", {}],
    ["eID", { passwordMode: "NONE" }],
  ])("is asked for once, spends no attempt, and waits for a person: %s", async (unsupported, plan) => {
    const { simulator, settings } = await openTransfer({ unsupported, ...plan }, {}, BURNS);
    for (let round = 0; round < 3; round++) await runOnce(settings);
    expect(simulator.totals().info).toBe(1);
    expect(await readdir(join(settings.work, "slots"))).toEqual([]);
    expect((await peekStatus(settings)).attention).toMatchObject([
      { trackingId: "t1", reason: "browser", actions: ["discard"] },
    ]);
    const message = `Unsupported operation: ${unsupported}". Open it in a browser, then discard it here`;
    const daemon = startDaemon(settings);
    await order(settings, "retry");
    await expect.poll(() => daemon.changes.at(-1)).toMatchObject(waiting);
    expect(daemon.changes.at(-1)?.message).toContain(message);
    expect(simulator.totals().info).toBe(2);
  });

  test("a password that is supplied later is refused at once, and one that was supplied is removed", async () => {
    const plan = { trackingId: "t1", securityMode: "QUICK", unsupported: "QUICK" } as const;
    const { config, simulator, state } = await install({ ...BURNS, transfers: [transferPlan(plan)] });
    const inlet = (...args: string[]) => callCommand([...args, "--config", config]);
    await inlet("once");
    const file = `${config}.password`;
    await writeFile(file, PASSWORD);
    const supply = () => inlet("password", "t1", "--password-file", file);
    await supply();
    await inlet("once");
    expect(simulator.totals().info).toBe(1);
    await expect(supply()).rejects.toThrow("the service opens it only in a browser");
    expect(await readdir(join(state, "passwords"))).toEqual([]);
    expect(await readdir(join(state, "accepted"))).toEqual([]);
    expect((await inlet("show", "t1")).stdout).toContain("waiting (browser)");
  });

  test("another 501 is no statement about the transfer, and is retried", async () => {
    const faults = [{ on: "info", does: { kind: "error", status: 501, errorCode: 5003 } }] as const;
    const { settings } = await openTransfer({}, {}, { faults: [...faults] });
    await startAndDeliver(settings, { retryMs: 20 });
  });
});

describe("a service that lists transfers in every state", () => {
  /** Without an entry, the transfer is not taken up at all. */
  const OUTCOMES: Readonly<Record<string, string | undefined>> = {
    Active: "delivered",
    Unknown: "delivered",
    Shiny: "delivered",
    Processing: undefined,
    PENDING: undefined,
    Failed: undefined,
    Deleted_by_expiration: undefined,
    Deleted_by_revocation: undefined,
    DELETED_BY_ADMIN: undefined,
    Deleted_by_security: undefined,
  };

  test("takes up only active ones, and those whose state it does not know", async () => {
    const ids = Object.keys(OUTCOMES);
    const transfers = ids.map((trackingId) => transferPlan({ trackingId }));
    const { simulator, settings } = await openMailbox({}, { transfers });
    // The newest is the first of the list.
    for (const [at, value] of ids.toReversed().entries()) {
      const does = { kind: "alter", path: `data.${at}.status.state`, value } as const;
      simulator.addFault({ on: "received", times: "always", does });
    }
    const daemon = await runOnce(settings);
    expect(Object.fromEntries(ids.map((id) => [id, daemon.stateOf(id)]))).toEqual(OUTCOMES);
    expect(simulator.totals().info).toBe(3);
  });
});

describe("a row of the confidential message in the checksums file", () => {
  test.each<readonly [string, Partial<TransferPlan>, Partial<Scenario>, string]>([
    ["is compared with the file", { messageRow: "text" }, {}, "file"],
    ["is compared with the EML", { messageRow: "eml" }, {}, "eml"],
    ["is compared with the EML, by SHA-1", { messageRow: "eml", algorithm: "SHA-1" }, {}, "eml"],
    ["is accepted where the list does not tell", { messageRow: "text" }, { showsMessage: false }, "none"],
    ["is accepted without a checksum", { messageRow: "text", algorithm: "none" }, {}, "none"],
  ])("%s", async (_name, plan, scenario, compared) => {
    const { outcome, manifest } = await receive({ message: "for you alone", ...plan }, scenario);
    expect(outcome).toBe("delivered");
    expect(manifest).toMatchObject({ message: "present", messageRow: { originalName: "message", compared } });
  });

  test("is accepted where the service refuses the file, and the manifest says that nothing was compared", async () => {
    const plan = { message: "for you alone", messageRow: "text" } as const;
    const fault = { on: "file", file: "message", times: "always" } as const;
    const does = { kind: "error", status: 404, errorCode: 2003 } as const;
    const { outcome, manifest } = await receive(plan, { faults: [{ ...fault, does }] });
    expect([outcome, manifest["messageRow"]]).toEqual([
      "delivered",
      expect.objectContaining({ compared: "none" }),
    ]);
  });

  test.each<readonly [string, Partial<TransferPlan>, Partial<Scenario>]>([
    ["another checksum than the message's file", { messageRow: "wrong" }, {}],
    [
      "the message is not the only file without an entry",
      { messageRow: "text" },
      { faults: [withoutSecondFile()] },
    ],
  ])("I1 whole or nothing: quarantines the transfer if %s", async (_name, plan, scenario) => {
    const { outcome } = await receive({ message: "for you alone", ...plan }, scenario);
    expect(outcome).toBe("CHECKSUMS_INCOMPLETE");
  });

  test.each([true, false])(
    "I1 whole or nothing: quarantines a transfer without a message (the list tells: %s)",
    async (showsMessage) => {
      const { outcome } = await receive({}, { showsMessage, faults: [withoutSecondFile()] });
      expect(outcome).toBe("CHECKSUMS_INCOMPLETE");
    },
  );
});

describe("a service that answers 404 to a threshold that it cannot parse", () => {
  test("is asked once more before no message means none", async () => {
    const { outcome, manifest, requests } = await receive({}, { showsMessage: false });
    expect([outcome, manifest["message"]]).toEqual(["delivered", "none"]);
    const asked = requests.filter(({ operation }) => operation === "eml");
    expect(asked.map(({ query }) => query["threshold"])).toEqual([["0.000001"], undefined]);
  });
});

/** The list of files lacks the second file, which the checksums file names. */
function withoutSecondFile() {
  return { on: "files", times: "always", does: { kind: "alter", path: "data.1" } } as const;
}

async function receive(plan: Partial<TransferPlan>, scenario: Partial<Scenario>) {
  const { simulator, settings } = await openTransfer({ ...plan }, { verify: "prefer" }, { ...scenario });
  const { changes } = await runOnce(settings);
  const { state, reason, folder = "" } = changes.at(-1) ?? {};
  const isDelivered = state === "delivered";
  const text = isDelivered ? await readFile(join(settings.inbox, folder, "transfer.json"), "utf8") : "{}";
  const manifest = JSON.parse(text) as Readonly<Record<string, unknown>>;
  return { outcome: isDelivered ? state : reason, manifest, requests: simulator.requests() };
}
