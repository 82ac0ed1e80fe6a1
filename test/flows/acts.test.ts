/** Commands that act: outcomes and exit codes, several transfers, permissions, removed mailboxes, who did what. */
import { chmod, chown, rename, stat, writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { makeGroupFolder, runOnTerminal, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER_USER = 65534;
const RIGHT = "the-Right:1";
const WRONG_SUM = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
const BAD = { transfers: [transferPlan({ trackingId: "t1", files: WRONG_SUM })] };

describe("several transfers", () => {
  test("are named by their ids, or chosen by sender, reason and state, with a confirmation that says how many", async () => {
    const senders = { t1: "a@x.example", t2: "b@x.example", t3: "c@y.example" };
    const bad = Object.entries(senders).map(([trackingId, from]) =>
      transferPlan({ trackingId, from, files: WRONG_SUM }),
    );
    const { inlet, expectInlet, states, config, run } = await openSite({
      transfers: [...bad, transferPlan({ trackingId: "t4" })],
    });
    await run();
    const quarantined = { t1: "quarantined", t2: "quarantined", t3: "quarantined" };
    await expect.poll(states).toEqual({ ...quarantined, t4: "delivered" });
    const mixed = await inlet("release t1 t4 --yes --json");
    expect([mixed.exitCode, JSON.parse(mixed.stdout)]).toMatchObject([
      2,
      [
        { trackingId: "t1", result: "fine", state: "delivered" },
        { trackingId: "t4", result: "refused", status: 409 },
      ],
    ]);
    for (const args of ["--all", "--sender *", "t2 --all", "t2 --reason x"])
      expect((await inlet(`discard ${args}`)).exitCode).toBe(2);
    expect((await inlet("discard")).exitCode).toBe(2);
    await expectInlet("discard --all --sender *@y.example", 2, "add --yes");
    const asked = await runOnTerminal(
      ["discard", "--all", "--reason", "checksum_mismatch", "--config", config],
      { prompt: "Discard 2 transfers?", input: "y\n" },
    );
    expect([asked.exitCode, asked.stdout]).toEqual([0, expect.stringContaining("t3 was discarded.")]);
    expect(asked.stdout).toContain(`t3 from c@y.example for ${MAILBOX}, quarantined`);
    // The journal follows the records.
    await expect.poll(states).toEqual({ t1: "delivered", t2: "gone", t3: "gone", t4: "delivered" });
    await expectInlet("retry --all --yes", 0, /^No transfer matches\.\n$/);
  });

  test("of one sender get one password, which is tried for one of them first", async () => {
    const ids = ["t1", "t2", "t3"];
    const transfers = ids.map((trackingId) => transferPlan({ trackingId, password: RIGHT }));
    const { expectInlet, simulator, runUntil } = await openSite({ transfers });
    await runUntil({ t1: "waiting", t2: "waiting", t3: "waiting" });
    const line = "password --all --sender anna@* --yes";
    await expectInlet(line, 3, "2 transfers: The password was not tried", { input: "wrong-Pass:2" });
    const sent = ids.flatMap((id) => simulator.refusedPasswords(id)).filter((it) => it === "wrong-Pass:2");
    expect(sent).toHaveLength(1);
    const right = await expectInlet(line, 0, "", { input: RIGHT });
    expect(right.stderr.match(/The password was accepted\. t\d was delivered/g)).toHaveLength(3);
  });
});

test("a transfer of a mailbox that was removed from the configuration is shown, listed and discarded", async () => {
  const { inlet, expectInlet, config, run, rewrite } = await openSite(BAD);
  await inlet("once");
  await rewrite({ mailboxes: [mailboxKeys("other@example.com")] });
  expect((await inlet("list")).stdout).toContain(`quarantined\t${MAILBOX}`);
  const commands = [`inlet discard --config ${config} t1`];
  // Another shell does not have this variable.
  const byVariable = await runProgram(["show", "t1", "--json"], { env: { INLET_CONFIG: config } });
  for (const { stdout } of [await inlet("show t1 --json"), byVariable])
    expect(JSON.parse(stdout)).toMatchObject({ mailbox: MAILBOX, commands });
  await expectInlet("retry t1", 2, "can only be discarded");
  await run();
  await expectInlet(`discard t1 --mailbox ${MAILBOX} --yes`, 0, /^t1 was discarded\.\n$/);
});

describe("a user who may not use the folders", { tags: ["system"] }, () => {
  test("acts through the daemon's socket, unless the console is read-only", async () => {
    const path = join(await makeGroupFolder(OTHER_USER), "console.sock");
    const http = { listen: `unix:${path}` };
    const site = await openSite(
      { transfers: [...BAD.transfers, transferPlan({ trackingId: "t2", password: RIGHT })] },
      { http },
    );
    const { config, folder, rewrite, run, expectInlet } = site;
    const reader = await run();
    await letRead(config, folder);
    const user = { user: OTHER_USER, input: RIGHT };
    const read = async (line: string) => (await site.inlet(line, user)).stdout;
    await expect.poll(() => read("list")).toMatch(/quarantined.*t1/);
    await expectInlet("discard t1 --yes", 5, "refuses", user);
    await reader.stop();

    await rewrite({ http: { ...http, actions: true }, mailboxes: site.mailboxes });
    await chmod(config, 0o644);
    const daemon = await run();
    await expect.poll(() => read("list")).toMatch(/waiting.*t2/);
    await expectInlet("retry t1", 3, "t1: in quarantine", user);
    await expectInlet("password t2", 0, "t2 was delivered", user);
    await expectInlet("discard t1 --yes", 0, "", user);
    const who = "nobody (as claimed)";
    const { acts } = JSON.parse(await read("show t1 --json"));
    expect(acts).toMatchObject([
      { act: "retry", who },
      { act: "discard", who },
    ]);
    await daemon.stop();
    await expectInlet("list", 5, "", user);
  });
});

test("I7 nothing silent: the journal says who did what, when and from where, and no password", async () => {
  const { inlet, states, config, journal, run, rewrite, mailboxes } = await openSite({
    transfers: [...BAD.transfers, transferPlan({ trackingId: "t2", password: RIGHT })],
  });
  await inlet("once");
  // Given while no daemon runs.
  await inlet("password t2", { input: RIGHT, env: { SUDO_USER: "berta" } });
  const first = await run();
  await expect.poll(states).toMatchObject({ t2: "delivered" });
  await inlet("retry t1");
  await first.stop();
  await run();
  await inlet("discard t1 --yes", { env: { SUDO_USER: "carla\u202e" } });
  await rewrite({ mailboxes, limits: { minFreeSpace: "2KiB", maxFiles: 7 } });
  const acts = async () => JSON.parse((await inlet("history --actions --json")).stdout) as object[];
  await expect.poll(acts).toHaveLength(4);
  await writeFile(config, "{ nonsense: ");
  await expect.poll(async () => (await journal()).includes("reload-refused")).toBe(true);
  await rewrite({ mailboxes });
  await expect.poll(async () => (await acts()).length).toBe(6);

  const { username } = userInfo();
  // Only root is named by the variable: any other user could set it.
  const isRoot = process.getuid?.() === 0;
  const sudo = (name: string) => (isRoot ? `${name} (sudo)` : username);
  const common = { from: hostname(), at: expect.any(String), id: expect.stringMatching(/^[0-9a-f]{16}$/) };
  const given = expect.any(String);
  // An order has its number and its time.
  const id = expect.stringMatching(/^\d+\.\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const about = { ...common, mailbox: MAILBOX, sender: "anna@supplier.example", given, id };
  expect(await acts()).toEqual([
    { ...common, act: "reload", who: config, keys: ["limits"] },
    { ...common, act: "reload-refused", who: config, reason: "CONFIG_INVALID" },
    { ...common, act: "reload", who: config, keys: ["limits"] },
    { ...about, act: "discard", who: sudo("carla?"), trackingId: "t1", round: 2 },
    { ...about, act: "retry", who: username, trackingId: "t1", round: 1 },
    { ...about, act: "password", who: sudo("berta"), trackingId: "t2", round: 1 },
  ]);
  expect(await journal()).not.toContain(RIGHT);
  const last = isRoot ? "carla\\? \\(sudo\\)" : username;
  expect((await inlet("show t1")).stdout).toMatch(
    new RegExp(`Operators:\n {2}\\S+ {2}retry, by ${username} from \\S+\n {2}\\S+ {2}discard, by ${last}`),
  );
  const found = await inlet(`history --actions --text ${isRoot ? "berta" : "t2"}`);
  expect(found.stdout.split("\t").slice(1, 4)).toEqual(["password", sudo("berta"), hostname()]);
  expect((await inlet("history --actions --state gone")).exitCode).toBe(2);
});

test("I7 nothing silent: the journal lists a password that was put into the drop folder by hand, once", {
  tags: ["system"],
}, async () => {
  const { inlet, states, folder, runUntil } = await openSite({
    transfers: [transferPlan({ trackingId: "t1", password: RIGHT })],
  });
  await runUntil({ t1: "waiting" });
  const acts = async () => JSON.parse((await inlet("history --actions --json")).stdout) as object[];
  const path = join(folder, "state/passwords/t1");
  const supply = async (password: string, user: number) => {
    await writeFile(join(folder, "password"), password);
    await chown(join(folder, "password"), user, 0);
    await rename(join(folder, "password"), path);
  };
  const about = { act: "password", mailbox: MAILBOX, trackingId: "t1", round: 1, from: "the drop folder" };
  await supply("wrong", OTHER_USER);
  await expect.poll(acts).toMatchObject([{ ...about, who: "nobody" }]);
  await expect.poll(() => stat(path).catch(() => undefined)).toBeUndefined();
  await supply(RIGHT, 54_321);
  await expect.poll(states).toEqual({ t1: "delivered" });
  expect(await acts()).toMatchObject([
    { ...about, who: "54321" },
    { ...about, who: "nobody" },
  ]);
});

/** Other users may read the configuration, but neither the work folder nor the state folder. */
async function letRead(config: string, folder: string): Promise<void> {
  await chmod(folder, 0o755);
  await chmod(config, 0o644);
  await chmod(join(folder, "inbox"), 0o755);
}
