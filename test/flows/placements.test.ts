/** Deliveries for consumers that cannot read our folders: single files, manifests elsewhere, done-markers. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callCommand, listJson } from "../support/command.ts";
import { type Installation, install, mailboxKeys } from "../support/installation.ts";
import { runCommand, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "archive@example.com";
const TRANSFERS = [transferPlan({ trackingId: "t1", message: "Psst" })];

describe("a folder", () => {
  test("has its manifest and sums beside it, and a done-marker after it, and gets another number if one of these is left", async () => {
    const handoff = { manifest: "beside", done: true };
    const installation = await deliver(handoff, "{mailbox}/{trackingId}");
    const { inbox, config } = installation;
    const folder = join(inbox, MAILBOX);
    expect(list(folder)).toEqual(["t1", "t1.SHA256SUMS", "t1.done", "t1.transfer.json"]);
    expect(list(join(folder, "t1"))).toEqual(["Größe, 2.csv", "a.txt", "message.eml"]);
    const sums = await runCommand("sha256sum", ["--quiet", "-c", "t1.SHA256SUMS"], { cwd: folder });
    expect(sums).toMatchObject({ exitCode: 0, stdout: "" });
    await rm(join(folder, "t1"), { recursive: true });
    await runProgram(["redeliver", "t1", "--mailbox", MAILBOX, "--yes", "--config", config]);
    await once(installation);
    const again = list(folder).filter((name) => name.startsWith("t1-2"));
    expect(again).toEqual(["t1-2", "t1-2.SHA256SUMS", "t1-2.done", "t1-2.transfer.json"]);
  });

  test("can come without any manifest, and in the inbox itself", async () => {
    const { inbox } = await deliver({ manifest: "none", done: ".ok" }, "{trackingId}");
    expect(list(inbox)).toEqual([".inlet", "t1", "t1.ok"]);
    expect(list(join(inbox, "t1"))).toEqual(["Größe, 2.csv", "a.txt", "message.eml"]);
  });

  test("keeps its manifest inside if only the done-marker is configured", async () => {
    const { inbox } = await deliver({ done: true }, "{trackingId}");
    expect(list(inbox)).toEqual([".inlet", "t1", "t1.done"]);
    expect(list(join(inbox, "t1"))).toContain("transfer.json");
  });

  test("is removed after its time, together with the files beside it, and nothing else is", async () => {
    const handoff = { manifest: "beside", done: true, keep: { notPickedUp: "1s" } };
    const installation = await deliver(handoff, "{trackingId}");
    const { inbox } = installation;
    await writeFile(join(inbox, "t1.other"), "of a consumer");
    await removed(installation, () => !existsSync(join(inbox, "t1")));
    expect(list(inbox)).toEqual([".inlet", "t1.other"]);
  });
});

describe("single files", () => {
  const FILES = { deliver: "files", manifest: "beside", done: true };

  test("appear with their transfer in their names, in a folder that mailboxes share", async () => {
    const transfers = [transferPlan({ trackingId: "t1", to: [MAILBOX, OTHER] })];
    const mailboxes = [mailboxKeys(MAILBOX), mailboxKeys(OTHER)];
    const { inbox } = await deliver({ deliver: "files" }, "flat", { transfers, mailboxes });
    expect(list(join(inbox, "flat"))).toEqual([
      "t1_Größe, 2-2.csv",
      "t1_Größe, 2.csv",
      "t1_a-2.txt",
      "t1_a.txt",
    ]);
  });

  test("are checked before, listed in a manifest, have sums and done-markers, and a redelivery leaves them alone", async () => {
    const script = 'cd "$INLET_FOLDER" && test -s "$INLET_MANIFEST" && test -e a.txt && ! test -e READY';
    const installation = await deliver(FILES, "flat", { check: { command: ["sh", "-c", script] } });
    const flat = join(installation.inbox, "flat");
    const before = list(flat);
    expect(before).toEqual([
      "t1_Größe, 2.csv",
      "t1_Größe, 2.csv.done",
      "t1_SHA256SUMS",
      "t1_a.txt",
      "t1_a.txt.done",
      "t1_message.eml",
      "t1_message.eml.done",
      "t1_transfer.json",
    ]);
    const { files, messageFile } = JSON.parse(readFileSync(join(flat, "t1_transfer.json"), "utf8"));
    const delivered = [...files, messageFile].map((file: { deliveredAs: string }) => file.deliveredAs);
    expect(delivered.toSorted()).toEqual(["t1_Größe, 2.csv", "t1_a.txt", "t1_message.eml"]);
    expect(await runCommand("sha256sum", ["--quiet", "-c", "t1_SHA256SUMS"], { cwd: flat })).toMatchObject({
      exitCode: 0,
    });
    await writeFile(join(flat, "t1_a.txt"), "mine now");
    const { config } = installation;
    await runProgram(["redeliver", "t1", "--mailbox", MAILBOX, "--yes", "--config", config]);
    await once(installation);
    expect(list(flat)).toHaveLength(2 * before.length);
    expect(readFileSync(join(flat, "t1_a.txt"), "utf8")).toBe("mine now");
    expect(readFileSync(join(flat, "t1_a-2.txt"), "utf8")).toBe("Hello");
  });

  test("are picked up when all of them are gone", async () => {
    const installation = await deliver(FILES, "flat");
    const { inbox, folder } = installation;
    const take = async (name: string) => rename(join(inbox, "flat", name), join(folder, name));
    await take("t1_a.txt");
    await take("t1_message.eml");
    expect(await stateOf(installation)).toBe("delivered");
    await take("t1_Größe, 2.csv");
    expect(await stateOf(installation)).toBe("picked-up");
    expect(list(join(inbox, ".inlet/placements"))).toEqual([]);
  });

  test("are announced to the command once all of them are there", async () => {
    const script = 'cp "$INLET_MANIFEST" "$0"; ls "$INLET_FOLDER" > "$0.ls"';
    const target = join((await install()).folder, "copy");
    await deliver({ deliver: "files", command: ["sh", "-c", script, target] }, "flat");
    expect(readFileSync(`${target}.ls`, "utf8")).toContain("t1_message.eml");
    const { files } = JSON.parse(readFileSync(target, "utf8"));
    expect(files[0]).toHaveProperty("deliveredAs");
  });

  test("are removed after their time, but not a file that took the place of one", async () => {
    const installation = await deliver({ ...FILES, keep: { notPickedUp: "1s" } }, "flat");
    const flat = join(installation.inbox, "flat");
    await rm(join(flat, "t1_a.txt"));
    await writeFile(join(flat, "t1_a.txt"), "of a consumer");
    await removed(installation, () => !existsSync(join(flat, "t1_message.eml")));
    expect(list(flat)).toEqual(["t1_a.txt"]);
  });
});

async function deliver(
  handoff: Record<string, unknown>,
  layout: string,
  { transfers = TRANSFERS, ...keys }: Record<string, unknown> & { transfers?: typeof TRANSFERS } = {},
): Promise<Installation> {
  const installation = await install({ transfers }, { handoff, defaults: { layout }, ...keys });
  await once(installation);
  return installation;
}

async function once({ config }: Installation): Promise<void> {
  expect((await callCommand(["once", "--config", config])).outcome).toBe("fine");
}

/** Runs again and again, because an old folder is removed only when it is found old twice. */
async function removed(installation: Installation, isRemoved: () => boolean): Promise<void> {
  for (let tries = 0; tries < 60 && !isRemoved(); tries++) await once(installation);
}

async function stateOf(installation: Installation): Promise<string> {
  await once(installation);
  return (await listJson(installation.config))[0]?.state ?? "";
}

function list(folder: string): string[] {
  return readdirSync(folder).toSorted();
}
