// @module-tag system
/** `handoff.group`: delivered files and folders, and the folders above them, appear with their group. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, statSync } from "node:fs";
import { chmod, chown, lstat, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runDaemon } from "../../src/daemon.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { checkWith, makeHandoff } from "../support/handoff.ts";
import { install } from "../support/installation.ts";
import { LAUNCHER, runCommand, runProgram } from "../support/program.ts";
import { openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";

const [GROUP, OTHER_GROUP, DAEMON] = [17_001, 17_002, 15_000];

describe("a group for delivered files", () => {
  test.each(["files", "zip"] as const)(
    "is that of all files and folders by %s, from the moment they appear",
    async (fetch) => {
      const { settings } = await setUp({ fetch });
      const wrong: string[] = [];
      const look = () =>
        wrong.push(...entriesBelow(settings.inbox).filter((it) => !it.endsWith(` ${GROUP}`)));
      subscribe("inlet:durable-step", look);
      onTestFinished(() => void unsubscribe("inlet:durable-step", look));
      await runOnce(settings);
      expect(wrong).toEqual([]);
      const found = entriesBelow(settings.inbox).map((it) => it.slice(it.lastIndexOf("/") + 1));
      const own = found.filter((it) => it.includes(" 640 "));
      expect(found.slice(0, 3)).toEqual([
        `${MAILBOX} 750 ${GROUP}`,
        `anna@supplier.example 750 ${GROUP}`,
        `t1 750 ${GROUP}`,
      ]);
      expect(own).toEqual(found.slice(3));
      expect(own).toContain(`READY 640 ${GROUP}`);
      expect(own).toContain(`message.eml 640 ${GROUP}`);
      expect(await readdir(join(settings.work, "staging"))).toEqual([]);
    },
  );

  test("is kept by a check, and with a set-group-ID bit on the inbox", async () => {
    const { settings } = await setUp({ check: checkWith("true") });
    await mkdir(settings.inbox);
    await chown(settings.inbox, -1, OTHER_GROUP);
    await chmod(settings.inbox, 0o2770);
    await runOnce(settings);
    const found = entriesBelow(settings.inbox);
    expect(found.length).toBeGreaterThan(5);
    expect(found.filter((it) => !it.endsWith(` ${GROUP}`))).toEqual([]);
    expect((await lstat(join(settings.inbox, MAILBOX))).mode & 0o7777).toBe(0o2750);
  });

  test("belongs to each mailbox, and a folder that exists keeps its own", async () => {
    const transfers = [
      transferPlan({ trackingId: "t1" }),
      transferPlan({ trackingId: "t2", to: ["lab@example.com"] }),
    ];
    const simulator = await openTestSimulator({ transfers });
    const lab = { name: "lab@example.com", email: "lab@example.com" };
    const handoff = { ...makeHandoff({}), group: String(OTHER_GROUP) };
    const settings = await daemonSettings(
      [mailboxSettings(simulator), mailboxSettings(simulator, { ...lab, handoff })],
      { handoff: { ...makeHandoff({}), group: String(GROUP) } },
    );
    await mkdir(join(settings.inbox, MAILBOX), { recursive: true });
    await runOnce(settings);
    const groupOf = (...path: string[]) => statSync(join(settings.inbox, ...path)).gid;
    expect(groupOf(MAILBOX)).toBe(0);
    expect(groupOf(MAILBOX, "anna@supplier.example")).toBe(GROUP);
    expect(groupOf("lab@example.com", "anna@supplier.example", "t2", "transfer.json")).toBe(OTHER_GROUP);
  });

  test("may be one that Inlet is a member of, and none else: the start and the doctor say so", async () => {
    const { config, folder, inbox, rewrite } = await install();
    await rewrite({ handoff: { group: GROUP } });
    for (const path of [folder, config]) await chown(path, DAEMON, DAEMON);
    const runAs = (groups: string[], ...args: string[]) => {
      const who = ["--reuid", String(DAEMON), "--regid", String(DAEMON), ...groups];
      return runCommand("setpriv", [...who, process.execPath, LAUNCHER, ...args, "--config", config]);
    };
    const refused = await runAs(["--clear-groups"], "once");
    const named = `${GROUP} (EPERM; user ${DAEMON} is no member)`;
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining(named)]);
    expect(refused.stderr).toContain("SupplementaryGroups=");
    const found = `folders\tgroup ${GROUP}\t`;
    const doctor = await runAs(["--clear-groups"], "doctor");
    expect([doctor.exitCode, doctor.stdout]).toEqual([2, expect.stringContaining(`failed\t${found}`)]);
    const fromRoot = await runProgram(["doctor", "--config", config]);
    const why = `its number is ${GROUP}; user ${DAEMON} runs the daemon`;
    expect(fromRoot.stdout).toContain(`skipped\t${found}${why}`);
    const member = ["--groups", String(GROUP)];
    expect((await runAs(member, "doctor")).stdout).toContain(`ok\t${found}`);
    expect((await runAs(member, "once")).exitCode).toBe(0);
    expect(entriesBelow(inbox).filter((it) => !it.endsWith(` ${GROUP}`))).toEqual([]);
    expect(statSync(join(inbox, MAILBOX)).uid).toBe(DAEMON);
  });

  test("that is unknown refuses the start and a reload", async () => {
    const { settings, simulator } = await setUp({});
    const unknown = { ...settings, handoff: { ...settings.handoff, group: "no-such-group" } };
    const options = { mode: "run", stop: SIGNAL, graceMs: 0, onEvent: () => {} } as const;
    await expect(runDaemon(unknown, options)).rejects.toMatchObject({ code: "GROUP_UNKNOWN" });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    await expect(daemon.reload(unknown)).rejects.toMatchObject({ code: "GROUP_UNKNOWN" });
    await daemon.reload({ ...settings, handoff: { ...settings.handoff, group: String(OTHER_GROUP) } });
    simulator.addTransfer(transferPlan({ trackingId: "t2" }));
    await expect.poll(() => daemon.stateOf("t2")).toBe("delivered");
    const below = join(settings.inbox, MAILBOX, "anna@supplier.example");
    const groups = ["", "t1", "t2", "t2/transfer.json"].map((path) => statSync(join(below, path)).gid);
    expect(groups).toEqual([GROUP, GROUP, OTHER_GROUP, OTHER_GROUP]);
  });
});

async function setUp(mailbox: Parameters<typeof mailboxSettings>[1]) {
  const simulator = await openTestSimulator({
    transfers: [transferPlan({ trackingId: "t1", message: "Hello" })],
  });
  const handoff = { ...makeHandoff({}, 0o640, "READY"), group: String(GROUP) };
  const settings = await daemonSettings([mailboxSettings(simulator, mailbox)], { handoff });
  return { simulator, settings };
}

/** `PATH MODE GROUP` of everything below the inbox, without hidden names. */
function entriesBelow(folder: string): string[] {
  let names: string[] = [];
  try {
    names = readdirSync(folder).filter((name) => !name.startsWith("."));
  } catch {}
  return names.toSorted().flatMap((name) => {
    const path = join(folder, name);
    const { mode, gid } = statSync(path);
    const below = statSync(path).isDirectory() ? entriesBelow(path) : [];
    return [`${path} ${(mode & 0o777).toString(8)} ${gid}`, ...below];
  });
}
