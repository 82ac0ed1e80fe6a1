/** The check of a transfer before its delivery. */
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Settings } from "../../src/config/settings.ts";
import type { Check } from "../../src/model/mailbox.ts";
import { readApi } from "../support/api.ts";
import { runOnce, startDaemon } from "../support/daemon.ts";
import { checkWith } from "../support/handoff.ts";
import { openMailbox, order } from "../support/one-mailbox.ts";
import { end, logOf, makeFolder, startChild } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, OPERATOR, PASSWORD, pageSettings } from "../support/settings.ts";

const SENDER = "anna@supplier.example";
/** Appends a line for each run. */
const NOTE = 'echo "$INLET_ID $INLET_TRACKING_ID" >> "$0"';
/** Waits for a file. */
const WAIT = 'while ! [ -e "$1" ]; do sleep 0.02; done';

describe("the check", () => {
  test("sees the complete folder, read-only, with the facts of the transfer", async () => {
    const look = `${NOTE}; env > "$0.env"; pwd > "$0.pwd"; stat -c "%a %n" . * > "$0.modes"; sha256sum -c SHA256SUMS >&2`;
    const { settings, note } = await prepare((note) => checkWith(look, [note]));
    const daemon = await runOnce(settings);
    expect(daemon.changes.map(({ state }) => state)).toEqual([
      "discovered",
      "downloading",
      "checking",
      "delivering",
      "delivered",
    ]);
    const staged = readFileSync(`${note}.pwd`, "utf8").trim();
    expect(staged.startsWith(join(settings.work, "staging"))).toBe(true);
    const env = Object.fromEntries(lines(`${note}.env`).map((line) => line.split(/=(.*)/s).slice(0, 2)));
    const { PWD: _pwd, SHLVL: _level, _: _last, OLDPWD: _old, ...own } = env;
    expect(own).toEqual({
      PATH: process.env["PATH"],
      INLET_EVENT: "check",
      INLET_ID: JSON.parse(await readFile(join(delivered(settings), "transfer.json"), "utf8")).deliveryId,
      INLET_FOLDER: staged,
      INLET_MANIFEST: join(staged, "transfer.json"),
      INLET_MAILBOX: MAILBOX,
      INLET_SENDER: SENDER,
      INLET_TRACKING_ID: "t1",
      INLET_TO: MAILBOX,
      INLET_CC: "",
      INLET_SECURITY_MODE: "ONE_TIME_PASSWORD",
      INLET_PASSWORD_MODE: "MANUAL",
      INLET_TRANSFER_ID: expect.stringMatching(/./),
      INLET_VERIFIED: "all",
    });
    const modes = lines(`${note}.modes`);
    expect(modes).toContain("550 .");
    expect(modes).toContain("440 a.txt");
    expect(modes).toContain("440 transfer.json");
    const folder = delivered(settings);
    expect(modeOf(folder)).toBe("750");
    for (const name of await readdir(folder))
      expect([name, modeOf(join(folder, name))]).toEqual([name, "640"]);
  });

  test("that refuses quarantines the transfer, with the first line of its output as a safe reason", async () => {
    const line = "\\n%s/a.txt:\\t\\033[31mEvil\\342\\200\\256 %s FOUND\\nmore\\n";
    const script = `${NOTE}; printf '${line}' "$PWD" "$1"; exit 1`;
    const { settings, note, simulator } = await prepare((note) => checkWith(script, [note, PASSWORD]));
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("quarantined");
    const { reason, message } = daemon.changes.at(-1) ?? {};
    expect(reason).toBe("CHECK_REFUSED");
    expect(message).toContain("The check refused the transfer: a.txt: \ufffd[31mEvil\ufffd [secret] FOUND. ");
    const kept = quarantined(settings);
    expect((await readdir(kept)).toSorted()).toEqual(["Größe, 2.csv", "a.txt", "reason.json"]);
    const written = JSON.parse(await readFile(join(kept, "reason.json"), "utf8"));
    expect(written).toMatchObject({ code: "CHECK_REFUSED", message: expect.stringMatching(/FOUND$/) });

    // An operator decides despite the check, even when the service has lost the transfer.
    simulator.revoke("t1");
    await order(settings, "release");
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(lines(note)).toHaveLength(1);
    const manifest = JSON.parse(await readFile(join(delivered(settings), "transfer.json"), "utf8"));
    expect(manifest.released).toMatchObject({ by: OPERATOR.who, reason: "CHECK_REFUSED" });
    expect(manifest.verified).toBe("all");
  });

  test("that refused is asked again by `retry`, without the service", async () => {
    const { settings, note, go, simulator } = await prepare((note, go) =>
      checkWith(`${NOTE}; [ -e "$1" ]`, [note, go]),
    );
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("quarantined");
    expect(daemon.changes.at(-1)?.message).toContain("it gave no reason");
    simulator.revoke("t1");
    await order(settings, "retry");
    await expect.poll(() => daemon.changes.filter(({ state }) => state === "quarantined")).toHaveLength(2);
    await writeFile(go, "");
    await order(settings, "retry", 2);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(lines(note)).toHaveLength(3);
    expect(simulator.totals().file).toBe(2);
    expect(await readFile(join(delivered(settings), "a.txt"), "utf8")).toBe("Hello");
  });

  test("without a verdict is run again until there is one, without another download, and then needs a person", async () => {
    const { settings, note, go, simulator } = await prepare(
      (note, go) => checkWith(`${NOTE}; [ -e "$1" ] || { echo "scanner is away"; exit 2; }`, [note, go]),
      { http: pageSettings() },
    );
    const daemon = startDaemon(settings, { retryMs: 10 });
    await expect.poll(() => daemon.changes.some(({ needsPerson }) => needsPerson)).toBe(true);
    expect(lines(note).length).toBeGreaterThanOrEqual(5);
    const waits = daemon.changes.filter(({ state }) => state === "waiting");
    expect(waits.slice(0, 4).map(({ needsPerson }) => needsPerson)).toEqual(Array(4).fill(undefined));
    expect(waits[0]).toMatchObject({ reason: "check", code: "CHECK_FAILED" });
    expect(waits[0]?.message).toContain("it ended with exit code 2: scanner is away");
    const page = await daemon.page;
    await expect
      .poll(async () => ((await readApi(new URL("/api/status", page))) as Shown).attention)
      .toMatchObject([{ trackingId: "t1", reason: "check" }]);
    const metrics = await (await fetch(new URL("/metrics", page))).text();
    expect(metrics).toMatch(/inlet_waits_total\{reason="check"\} [5-9]/);
    // The service is not needed for this.
    simulator.revoke("t1");
    const listed = simulator.totals().received;
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(listed + 3);
    await writeFile(go, "");
    await order(settings, "retry");
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(simulator.totals().file).toBe(2);
    expect(daemon.reports).toEqual([]);
  });

  test.each([
    ["a file", "chmod u+w a.txt; echo x >> a.txt"],
    ["a file and its times", "chmod u+w a.txt; printf HELLO > a.txt; touch -d 2020-01-01 a.txt"],
    ["the manifest", "chmod u+w . transfer.json; sed -i s/anna/emma/ transfer.json"],
    ["the names", "chmod u+w .; mv a.txt b.txt; ln -s /etc/passwd a.txt; mkdir more"],
  ])("that changes %s never gets it delivered", async (_, change) => {
    const { settings, simulator } = await prepare((note, go) =>
      checkWith(`[ -e "$1" ] && exit 0; ${change}`, [note, go]),
    );
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("quarantined");
    expect(daemon.changes.at(-1)?.reason).toBe("CHECK_CHANGED");
    for (const name of await readdir(quarantined(settings))) {
      expect(statSync(join(quarantined(settings), name)).isFile()).toBe(true);
    }
    expect(simulator.totals().file).toBe(2);
    await writeFile(join(settings.inbox, "..", "go"), "");
    await order(settings, "retry");
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(await readFile(join(delivered(settings), "a.txt"), "utf8")).toBe("Hello");
  });

  test("may touch files, as long as their content stays, and leaves no process behind", async () => {
    const touch = "chmod u+w . a.txt; touch a.txt; chmod 600 a.txt";
    const { settings, note } = await prepare((note) =>
      checkWith(`${touch}; (while :; do sleep 1; done) & echo "$!" >> "$0"`, [note]),
    );
    await runOnce(settings);
    expect(modeOf(join(delivered(settings), "a.txt"))).toBe("640");
    for (const pid of lines(note)) await expect.poll(() => isAlive(pid)).toBe(false);
  });
});

describe("an interrupted check", () => {
  test("by kill -9 is waited for, and then run again", async () => {
    const folder = await makeFolder();
    const [note, go] = [join(folder, "note"), join(folder, "go")];
    const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
    const { url, clientId } = simulator;
    const check = checkWith(`${NOTE}; echo $$ > "$0.pid"; ${WAIT}`, [note, go]);
    const task = { url, clientId, folder, mailbox: { check } };
    const start = () => startChild(task);
    const first = start();
    await expect.poll(() => lines(note).length).toBe(1);
    first.kill("SIGKILL");
    await once(first, "exit");
    expect(isAlive(lines(`${note}.pid`)[0] ?? "")).toBe(true);
    const second = start();
    const logged = logOf(second);
    await expect.poll(logged).toContain('"msg":"checking"');
    expect(lines(note)).toHaveLength(1);
    await writeFile(go, "");
    await expect.poll(logged).toContain('"msg":"delivered"');
    expect(lines(note)).toHaveLength(2);
    await end(second);
  });

  test("by `discard` ends, and nothing is delivered", async () => {
    const { settings, note } = await prepare((note, go) =>
      checkWith(`${NOTE}; echo $$ > "$0.pid"; ${WAIT}`, [note, go]),
    );
    const daemon = startDaemon(settings, { slowMs: 100 });
    await expect.poll(() => lines(note).length).toBe(1);
    await order(settings, "discard");
    await expect.poll(() => daemon.stateOf("t1")).toBe("gone");
    await expect.poll(() => isAlive(lines(`${note}.pid`)[0] ?? "")).toBe(false);
    await expect.poll(() => readdir(join(settings.work, "staging"))).toEqual([]);
    expect(existsSync(delivered(settings))).toBe(false);
  });
});

interface Shown {
  readonly attention: readonly object[];
}

/** One transfer, and settings with this check. */
async function prepare(check: (note: string, go: string) => Check | undefined, more: Partial<Settings> = {}) {
  const { simulator, settings } = await openMailbox({}, {}, more);
  const folder = join(settings.inbox, "..");
  const [note, go] = [join(folder, "note"), join(folder, "go")];
  const mailboxes = settings.mailboxes.map((mailbox) => ({ ...mailbox, check: check(note, go) }));
  return { settings: { ...settings, mailboxes }, note, go, simulator };
}

function delivered({ inbox }: Settings): string {
  return join(inbox, MAILBOX, SENDER, "t1");
}

/** The only one. */
function quarantined({ work }: Settings): string {
  const [name = ""] = readdirSync(join(work, "quarantine"));
  return join(work, "quarantine", name);
}

function lines(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

function isAlive(pid: string): boolean {
  return existsSync(`/proc/${pid}/exe`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}
