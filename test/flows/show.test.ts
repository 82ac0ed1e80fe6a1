/** What `inlet show`, the page of a transfer and the API say about files, failed programs and times, on the work folder of a real run. */
import { hash } from "node:crypto";
import { readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { changeOfLine } from "../../src/notify/notices.ts";
import { readStory } from "../../src/operate/story.ts";
import { callCommand } from "../support/command.ts";
import { NOTHING_KNOWN, openTestConsole } from "../support/console.ts";
import { type Installation, install, mailboxKeys } from "../support/installation.ts";
import { runOnTerminal, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

type Keys = Readonly<Record<string, unknown>>;

const HELLO = {
  name: "a.txt",
  originalName: "a.txt",
  size: 5,
  sha256: "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969",
};
const EVIL = "<b>e\u202evil\u001b[2J.exe";

test("an order that no daemon has carried out yet is shown with who gave it", async () => {
  const installation = await receive({}, { files: [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" }] });
  await callCommand(["retry", "t1", "--config", installation.config]);
  const { orders } = await showJson(installation);
  expect(orders).toMatchObject([{ act: "retry", who: expect.any(String), at: expect.any(String) }]);
  expect(await showText(installation)).toMatch(/Ordered +retry, by .*; not carried out yet/);
  expect((await readConsole(installation)).page).toMatch(/<dt>Ordered<\/dt>.*not carried out yet/);
});

describe("the files of a transfer", () => {
  test("are known in quarantine, with the verdict on each", async () => {
    const files = [
      { name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const,
      { name: EVIL, text: "x" },
    ];
    const installation = await receive({}, { files });
    const { contents } = await showJson(installation);
    expect(contents).toMatchObject([
      { ...HELLO, checksum: expect.stringMatching(/./), algorithm: expect.any(String), verified: false },
      { originalName: EVIL, size: 1, verified: true },
      { name: "message.eml", verified: false },
    ]);
    const text = await showText(installation);
    expect(text).toMatch(/Subject +Order 4711\n {2}Content +2 files, 6 bytes\n/);
    expect(text).toMatch(/Files:\n {2}a\.txt, 5 bytes, does not match its checksum, \S+ \S+\n/);
    expect(text).toContain("(sent as <b>e\\u{202e}vil\\u{1b}[2J.exe), 1 byte, verified, ");
    const { page, api } = await readConsole(installation);
    expect(page).toMatch(/<h2>Files<\/h2>.*a\.txt.*does not match its checksum/s);
    expect(page).toContain("&lt;b&gt;e\\u202evil\\u001b[2J.exe");
    expect(page).not.toContain("<b>e");
    expect(api).toMatchObject({ contents, moreContents: 0 });
  });

  test.each([
    ["in the folder", {}],
    ["elsewhere", { manifest: "beside", done: true }],
  ])("are known while they wait for the check, with the manifest %s", async (_, handoff) => {
    const installation = await receive({ handoff, check: { command: ["sh", "-c", "exit 75"] } });
    const story = await showJson(installation);
    expect(story).toMatchObject({ state: "waiting", reason: "check" });
    expect(story.contents).toMatchObject([
      { ...HELLO, verified: true },
      { size: 8 },
      { name: "message.eml" },
    ]);
    expect(story.contents?.[2]).not.toHaveProperty("checksum");
  });

  test.each([
    ["inside", {}],
    ["beside the folder", { manifest: "beside" }],
    ["nowhere", { manifest: "none" }],
    ["nowhere, for single files", { deliver: "files" }],
  ])(
    "are known after the delivery, with the manifest %s, until a consumer takes them",
    async (_, handoff) => {
      const installation = await receive({ handoff });
      const story = await showJson(installation);
      expect(story).toMatchObject({ state: "delivered", contents: [{ ...HELLO, verified: true }, {}, {}] });
      await rm(join(installation.inbox, story.folder ?? ""), { recursive: true });
      await callCommand(["once", "--config", installation.config]);
      expect(await showJson(installation)).toMatchObject({ state: "picked-up", contents: null });
      expect(await showText(installation)).not.toContain("Files:");
    },
  );

  test("are those of the manifest that was delivered, and of no other", async () => {
    const installation = await receive({});
    const story = await showJson(installation);
    const manifest = join(installation.inbox, story.folder ?? "", "transfer.json");
    const end = await findEnd(installation);
    const [text, sums] = await Promise.all(
      [manifest, join(manifest, "..", "SHA256SUMS")].map((path) => readFile(path, "utf8")),
    );
    const written = [text, sums].map((it = "") => ({
      bytes: Buffer.byteLength(it),
      sha256: hash("sha256", it),
    }));
    expect(end.record.written).toEqual({ manifest: written[0], sums: written[1] });
    const isKnown = expect.objectContaining({ contents: story.contents, contentsProblem: null });
    // As an earlier version wrote it.
    await writeFile(end.path, `${JSON.stringify({ ...end.record, written: undefined })}\n`);
    expect(await showJson(installation)).toEqual(isKnown);
    await truncate(manifest, 300 * 1024 ** 2);
    const tooLarge = "transfer.json is larger than any of ours";
    expect(await showJson(installation)).toMatchObject({ contents: null, contentsProblem: tooLarge });
    await writeFile(end.path, `${JSON.stringify(end.record)}\n`);
    expect(await showText(installation)).toMatch(
      /Files:\n {2}not known: transfer\.json has \d+ bytes instead/,
    );
    expect((await readConsole(installation)).page).toMatch(/Not known: transfer\.json has \d+ bytes instead/);
    await writeFile(manifest, text ?? "");
    expect(await showJson(installation)).toEqual(isKnown);
    // The status and the log say so too, and each start repeats only the status.
    await truncate(manifest, 300 * 1024 ** 2);
    const once = () => runProgram(["once", "--config", installation.config]);
    const [first, second] = [await once(), await once()];
    expect([first, second].map(({ stderr }) => stderr.match(/changed after the delivery/g)?.length)).toEqual([
      1,
      undefined,
    ]);
    const status = await callCommand(["status", "--json", "--config", installation.config]);
    expect(JSON.parse(status.stdout).attention).toMatchObject([
      { trackingId: "t1", reason: "changed", message: expect.stringContaining(story.folder ?? "?") },
    ]);
  });

  test("are counted where a route holds the transfer: the list of files was read, but not kept", async () => {
    const routes = [{ name: "exe", file: "*.txt", action: "hold" }];
    const installation = await receive({ mailboxes: [{ ...mailboxKeys(MAILBOX), routes }] });
    const story = await showJson(installation);
    expect(story).toMatchObject({ reason: "held", files: 2, bytes: 13, contents: null });
    expect(await showText(installation)).toMatch(/Content +2 files, 13 bytes/);
  });

  test("are listed up to a limit, and the others counted", async () => {
    const files = Array.from({ length: 1_003 }, (_, at) => ({ name: `${at}.txt`, text: `${at}` }));
    const installation = await receive({}, { files });
    const { contents, moreContents } = await showJson(installation);
    expect([contents?.length, moreContents]).toEqual([1_000, 4]);
    expect(await showText(installation)).toContain("\n  … and 4 more\n");
    expect((await readConsole(installation)).page).toContain("… and 4 more");
  });
});

/** More lines than are kept, control characters and markup. */
const TALK = "seq 1 900; printf 'quota\\texceeded \\033[31m<b>now</b>\\n' >&2";
const LAST = "900\nquota\texceeded \ufffd[31m<b>now</b>";

describe("the last output", () => {
  test("of a failed hand-off command is kept, bounded and harmless", async () => {
    const command = { command: ["sh", "-c", `${TALK}; exit 75`] };
    const installation = await receive({ handoff: command });
    const { rounds } = await showJson(installation);
    const [failed] = rounds[0]?.ended?.handoff?.failed ?? [];
    expect(failed).toMatchObject({ step: "command", message: expect.stringContaining("exit code 75") });
    expect(failed?.output?.endsWith(LAST)).toBe(true);
    expect(failed?.output?.length).toBeLessThanOrEqual(2_048);
    expect(failed?.output).toMatch(/^\d{3}\n\d{3}\n/);
    expect(await showText(installation)).toMatch(
      /command, next try \S+: The hand-off command failed: .*75\n(.*\n)* {5}\| 900\n {5}\| quota {2}exceeded \ufffd\[31m<b>now<\/b>\n/,
    );
    const { page, api } = await readConsole(installation);
    expect(page).toContain("900<br>quota  exceeded \ufffd[31m&lt;b&gt;now&lt;/b&gt;<br></pre>");
    expect(api).toMatchObject({ rounds });
  });

  test.each([
    ["gave no verdict", 75, "waiting"],
    ["refused the transfer", 1, "quarantined"],
  ])("of a check that %s is kept with its record", async (_, exitCode, state) => {
    const installation = await receive({ check: { command: ["sh", "-c", `${TALK}; exit ${exitCode}`] } });
    const story = await showJson(installation);
    expect(story).toMatchObject({ state, output: expect.stringMatching(/900\nquota/) });
    expect(await showText(installation)).toMatch(/Check says +\| \d+\n( +\| \d+\n)+ +\| quota {2}exceeded/);
    const { page, api } = await readConsole(installation);
    expect(page).toContain("900<br>quota  exceeded");
    expect(api).toMatchObject({ output: story.output });
    if (state === "quarantined") expect(await noticesIn(installation)).toContainEqual(LAST);
  });
});

describe("times", () => {
  test("are in the configured zone for people, and in UTC for programs", async () => {
    const installation = await receive({ timezone: "Asia/Kolkata" });
    const { config } = installation;
    const { at } = await showJson(installation);
    const shown = inKolkata(at.delivered ?? "");
    const text = (await runOnTerminal(["show", "t1", "--config", config])).stdout;
    expect(text).toMatch(/Times \(Asia\/Kolkata\):/);
    expect(text).toContain(`State        delivered, since ${shown}`);
    expect(await showText(installation)).toContain(`State        delivered, since ${at.delivered}`);
    for (const command of ["list", "history"]) {
      const { stdout } = await runOnTerminal([command, "--config", config]);
      expect(stdout).toMatch(/WHEN \(Asia\/Kolkata\) +STATE/);
      expect(stdout).toContain(`${shown}  delivered`);
    }
    const { page } = await readConsole(installation, "Asia/Kolkata");
    expect(page).toContain(
      `<dt>delivered</dt><dd><time datetime="${at.delivered}" title="${shown}">${shown} (`,
    );
    expect(page.match(/Asia\/Kolkata/g)).toHaveLength(1);
    expect(page).not.toContain("UTC");
  });
});

/** As another formatter writes it. */
function inKolkata(iso: string): string {
  const format = { timeZone: "Asia/Kolkata", dateStyle: "short", timeStyle: "medium" } as const;
  return new Intl.DateTimeFormat("sv-SE", format).format(Date.parse(iso));
}

interface Shown {
  readonly orders: readonly Keys[];
  readonly at: { readonly delivered?: string };
  readonly state: string;
  readonly folder: string | null;
  readonly contents: readonly Keys[] | null;
  readonly moreContents: number;
  readonly output: string | null;
  readonly rounds: readonly {
    readonly ended?: { readonly handoff?: { readonly failed?: readonly { readonly output?: string }[] } };
  }[];
}

/** The end record of the only transfer. */
async function findEnd({ inbox }: Installation) {
  const ledger = join(inbox, ".inlet/ledger");
  const name = (await readdir(ledger, { recursive: true })).find((it) => it.endsWith(".end-1.json")) ?? "";
  const path = join(ledger, name);
  return { path, record: JSON.parse(await readFile(path, "utf8")) };
}

/** The last two lines of each output that a message would quote. */
async function noticesIn({ inbox }: Installation): Promise<(string | undefined)[]> {
  const folder = join(inbox, ".inlet/journal");
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")),
  );
  const lines = texts.join("").trim().split("\n");
  return lines
    .flatMap((line) => changeOfLine(JSON.parse(line), Date.now())?.begin ?? [])
    .map(({ output }) => output?.split("\n").slice(-2).join("\n"));
}

/** The transfer `t1` after one run with these settings. */
async function receive(keys: Keys, plan: Parameters<typeof transferPlan>[0] = {}): Promise<Installation> {
  const installation = await install(
    { transfers: [transferPlan({ trackingId: "t1", message: "Psst", ...plan })] },
    keys,
  );
  await callCommand(["once", "--config", installation.config]);
  return installation;
}

async function showText({ config }: Installation): Promise<string> {
  return (await runProgram(["show", "t1", "--config", config])).stdout;
}

async function showJson({ config }: Installation): Promise<Shown> {
  return JSON.parse((await callCommand(["show", "t1", "--json", "--config", config])).stdout);
}

async function readConsole(
  { inbox }: Installation,
  timezone?: string,
): Promise<{ page: string; api: unknown }> {
  const { url, board } = await openTestConsole(0, {
    operate: {
      ...NOTHING_KNOWN.operate,
      story: (key) => readStory({ work: join(inbox, ".inlet"), inbox, mailboxes: [] }, key),
    },
  });
  board.listener({ type: "settings-reloaded", mailboxes: [], timezone, needsRestart: [] });
  const key = new URLSearchParams({ mailbox: MAILBOX, trackingId: "t1" });
  return {
    page: await (await fetch(`${url}transfer?${key}`)).text(),
    api: await (await fetch(`${url}api/transfers/story?${key}`)).json(),
  };
}
