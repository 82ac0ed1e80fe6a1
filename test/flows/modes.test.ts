/** Security modes, states and message rows, as real services have them. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario, TransferPlan } from "../../simulator/scenario.ts";
import { callCommand } from "../support/command.ts";
import { runOnce } from "../support/daemon.ts";
import { install } from "../support/installation.ts";
import { openMailbox, openTransfer } from "../support/one-mailbox.ts";
import { transferPlan } from "../support/service.ts";
import { PASSWORD } from "../support/settings.ts";

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
