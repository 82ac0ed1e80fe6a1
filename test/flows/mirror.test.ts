/** The main job: received transfers become finished folders, once, and every transfer ends in a visible state. */

import { createHash } from "node:crypto";
import { chmod, chown, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { TransferPlan } from "../../simulator/scenario.ts";
import { ledgerPaths, nameOf } from "../../src/ledger/paths.ts";
import { readTree, runOnce, startDaemon, withoutTimes } from "../support/daemon.ts";
import { openMailbox, openTransfer } from "../support/one-mailbox.ts";
import { runCommand } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";

/** Any group other than this process's. */
const GROUP = 60;

describe("I1 whole or nothing: a transfer becomes a folder", () => {
  test("with its files, the manifest, and sums that sha256sum accepts", async () => {
    const { settings } = await openTransfer({ message: "Psst" });
    const { changes } = await runOnce(settings);
    expect(changes.map((record) => record.state)).toEqual([
      "discovered",
      "downloading",
      "delivering",
      "delivered",
    ]);
    const folder = join(settings.inbox, MAILBOX, "anna@supplier.example", "t1");
    expect((await readdir(folder)).toSorted()).toEqual([
      "Größe, 2.csv",
      "SHA256SUMS",
      "a.txt",
      "message.eml",
      "transfer.json",
    ]);
    expect(await runCommand("sha256sum", ["-c", "SHA256SUMS"], { cwd: folder })).toMatchObject({
      exitCode: 0,
    });
    const manifest = JSON.parse(await readFile(join(folder, "transfer.json"), "utf8"));
    const eml = await readFile(join(folder, "message.eml"));
    const sha256 = createHash("sha256").update(eml).digest("hex");
    expect(manifest.messageFile).toEqual({ name: "message.eml", size: eml.byteLength, sha256 });
    // The message does not repeat the files beside it.
    expect(eml.toString()).not.toContain("Content-Disposition: attachment");
    expect(manifest).toMatchObject({
      version: 2,
      deliveryId: expect.stringMatching(/^[0-9a-f]{32}$/),
      message: "present",
      mailbox: MAILBOX,
      sender: "anna@supplier.example",
      trackingId: "t1",
      subject: "Order 4711",
      verified: "all",
      files: [
        { name: "a.txt", originalName: "a.txt", size: 5, algorithm: "SHA-256", verified: true },
        { name: "Größe, 2.csv", size: 8, verified: true },
      ],
    });
    expect(manifest.files[0].checksum).toBe(manifest.files[0].sha256);
    expect(((await stat(folder)).mode & 0o777).toString(8)).toBe("750");
    expect(((await stat(join(folder, "a.txt"))).mode & 0o777).toString(8)).toBe("640");
  });

  test("that is the same by single files and by ZIP, byte for byte", async () => {
    const files = Array.from({ length: 40 }, (_, at) => ({
      name: `file ${at}.txt`,
      text: `content ${at}`.repeat(at),
    }));
    const trees: Record<string, string>[] = [];
    for (const fetch of ["files", "zip", "auto"] as const) {
      const plan = transferPlan({ trackingId: "t1", files });
      const { simulator, settings } = await openMailbox({ fetch }, { transfers: [plan] });
      await runOnce(settings);
      trees.push(withoutTimes(await readTree(settings.inbox)));
      expect(simulator.totals().zip).toBe(fetch === "files" ? 0 : 1);
    }
    expect(Object.keys(trees[0] ?? {})).toHaveLength(42);
    expect(trees[1]).toEqual(trees[0]);
    expect(trees[2]).toEqual(trees[0]);
  });

  test("I5 no escape: under names that are safe everywhere, with the original in the manifest", async () => {
    const names = [
      "../up.txt",
      "CON",
      "a:b",
      "x".repeat(300),
      "transfer.json",
      "A.txt",
      "a.txt",
      "",
      "trailing. ",
    ];
    const files = names.map((name, at) => ({ name, text: `${at}` }));
    const { settings } = await openTransfer({ files });
    await runOnce(settings);
    const tree = await readTree(settings.inbox);
    expect(Object.keys(tree)).toHaveLength(names.length + 2);
    const manifest = JSON.parse(tree[`${MAILBOX}/anna@supplier.example/t1/transfer.json`] ?? "");
    expect(manifest.files.map((file: { originalName: string }) => file.originalName)).toEqual(names);
    expect((await readdir(join(settings.inbox, ".."))).toSorted()).toEqual(["inbox", "state"]);
  });

  test.each(["files", "zip"] as const)(
    "with the group that the inbox passes on, by %s",
    { tags: ["system"] },
    async (fetch) => {
      expect(process.getuid?.(), "another group takes root").toBe(0);
      const { settings } = await openTransfer({ message: "Hello" }, { fetch });
      await mkdir(settings.inbox);
      await chown(settings.inbox, 0, GROUP);
      await chmod(settings.inbox, 0o2770);
      await runOnce(settings);
      const delivered = await readdir(join(settings.inbox, MAILBOX), {
        recursive: true,
        withFileTypes: true,
      });
      const groups = delivered.map(async ({ parentPath, name }) => [
        name,
        (await stat(join(parentPath, name))).gid,
      ]);
      const all = await Promise.all(groups);
      expect(all).toEqual(all.map(([name]) => [name, GROUP]));
      expect(all.map(([name]) => name)).toContain("message.eml");
    },
  );

  test("with the configured modes on folders that it creates, whatever the umask, and no changes to others", {
    tags: ["system"],
  }, async () => {
    expect(process.getuid?.(), "another user takes root").toBe(0);
    const { settings } = await openMailbox(
      {},
      {},
      {
        handoff: { fileMode: 0o640, folderMode: 0o770, marker: undefined },
      },
    );
    const [above, sender] = [join(settings.inbox, MAILBOX), "anna@supplier.example"];
    const modeOf = async (folder: string) => (await stat(folder)).mode & 0o7777;
    await runOnce(settings);
    for (const folder of [settings.inbox, above, join(above, sender), join(above, sender, "t1")]) {
      expect([folder, await modeOf(folder)]).toEqual([folder, 0o770]);
    }
    expect([await modeOf(settings.work), await modeOf(settings.state)]).toEqual([0o700, 0o700]);
    expect(process.umask()).toBe(0o022);

    // A consumer of the group moves it away.
    const parent = join(settings.inbox, "..");
    await chmod(parent, 0o755);
    for (const folder of [settings.inbox, above, join(above, sender), join(above, sender, "t1")]) {
      await chown(folder, 0, GROUP);
    }
    const who = ["--reuid", "16000", "--regid", String(GROUP), "--clear-groups", "mv"];
    await mkdir(join(settings.inbox, "taken"), { mode: 0o770 });
    await chown(join(settings.inbox, "taken"), 16_000, GROUP);
    const move = [...who, join(above, sender, "t1"), join(settings.inbox, "taken")];
    expect(await runCommand("setpriv", move)).toMatchObject({ exitCode: 0, stderr: "" });

    // Folders of an administrator keep their mode and group.
    await rm(join(above, sender), { recursive: true });
    await chmod(above, 0o2750);
    // What was taken is gone as well: otherwise the next delivery would wait for a decision.
    for (const folder of [settings.work, join(settings.state, "inboxes"), join(settings.inbox, "taken")])
      await rm(folder, { recursive: true });
    await runOnce(settings);
    expect([await modeOf(above), await modeOf(join(above, sender))]).toEqual([0o2750, 0o2770]);
    expect(await modeOf(join(above, sender, "t1"))).toBe(0o770);
  });
});

describe("I2 once", () => {
  test("a transfer is delivered once across restarts, although the consumer has taken it away", async () => {
    const { simulator, settings } = await openMailbox();
    await runOnce(settings);
    await rename(join(settings.inbox, MAILBOX), join(settings.state, "taken"));
    for (let round = 0; round < 3; round++) expect((await runOnce(settings)).changes).toEqual([]);
    expect(simulator.totals().file).toBe(2);
  });
});

describe("a transfer that arrives while the daemon runs", () => {
  test("is found by the next poll and delivered, the earliest expiry first", async () => {
    const { simulator, settings } = await openMailbox({}, { transfers: [] });
    const plans: TransferPlan[] = [5, 1, 3].map((days) =>
      transferPlan({ trackingId: `in${days}days`, expiresInSeconds: days * 86_400 }),
    );
    for (const plan of plans) simulator.addTransfer(plan);
    const daemon = startDaemon({ ...settings, limits: { ...settings.limits, transfers: 1 } });
    await expect.poll(() => delivered(daemon)).toHaveLength(3);
    expect(delivered(daemon)).toEqual(["in1days", "in3days", "in5days"]);
    simulator.addTransfer(transferPlan({ trackingId: "later" }));
    await expect.poll(() => daemon.stateOf("later")).toBe("delivered");
  });

  test("a damaged record is reported once, is not replaced by a guess, and does not delay another transfer", async () => {
    const plans = ["t1", "t2"].map((trackingId) => transferPlan({ trackingId }));
    const { simulator, settings } = await openMailbox({ passwords: [] }, { transfers: plans });
    await runOnce(settings);
    const name = nameOf({ mailbox: MAILBOX, trackingId: "t1" });
    const damaged = ledgerPaths(settings.work).end(name, 1);
    await mkdir(dirname(damaged), { recursive: true });
    await writeFile(damaged, "{");
    const daemon = startDaemon({ ...settings, mailboxes: [mailboxSettings(simulator)] });
    simulator.addTransfer(transferPlan({ trackingId: "t3" }));
    await expect.poll(() => daemon.stateOf("t3")).toBe("delivered");
    const polls = simulator.totals().received;
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 4);
    expect(daemon.reports.filter((line) => line.includes("A ledger record is damaged"))).toHaveLength(1);
    expect(daemon.stateOf("t1")).toBeUndefined();
    expect(await readFile(damaged, "utf8")).toBe("{");
  });

  test("tokens are renewed before they expire, and obtained again after a refusal", async () => {
    const { simulator, settings } = await openMailbox({}, { tokenSeconds: 3600, transfers: [] });
    const daemon = startDaemon(settings);
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(1);
    simulator.advance(3700);
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(simulator.totals()["verification-token"]).toBe(2);
    expect(daemon.reports).toEqual([]);
  });
});

function delivered(daemon: ReturnType<typeof startDaemon>): string[] {
  return daemon.changes.filter((record) => record.state === "delivered").map((record) => record.trackingId);
}
