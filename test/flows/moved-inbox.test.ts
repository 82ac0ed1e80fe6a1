/** I2 once: what was delivered is not delivered again when folders are moved, lost or restored, until an operator says so. */
import { cp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FAULT_CODES } from "../../src/base/fault-codes.ts";
import type { Finding } from "../../src/cli/doctor/findings.ts";
import { startRun } from "../support/command.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { end, finish, logOf, runProgram, startProgram } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const COUNT = 20;
const FIRST = Array.from({ length: COUNT }, (_, at) => `t${String(at).padStart(2, "0")}`);
const LATER = ["u1", "u2", "u3"];

/** `chosen`: those of the changes that are tried on this engine. */
type TestsOf = (
  setUp: () => Promise<Site>,
  chosen: <Row extends readonly [what: string, ...rest: unknown[]]>(changes: readonly Row[]) => Row[],
) => void;

const ON_REDIS = new Set([
  "when the inbox is moved whole",
  "when the inbox is another folder",
  "when the inbox is copied without its dot-folders",
  "when the work folder is lost",
  "when work and state are lost",
]);

function onEngines(what: string, testsOf: TestsOf): void {
  describe(what, () => testsOf(setUp, (changes) => [...changes]));
  describe(`${what}, with a queue on Redis`, { tags: ["system"] }, () => {
    const setUpOnRedis = async () => setUp({ queue: (await startRedis()).url });
    testsOf(setUpOnRedis, (changes) => changes.filter(([change]) => ON_REDIS.has(change)));
  });
}

/** A daemon from cron that has delivered the first transfers, a backup of all, and the later ones. */
async function setUp(keys: Readonly<Record<string, unknown>> = {}) {
  const site = await install({ transfers: FIRST.map((trackingId) => transferPlan({ trackingId })) }, keys);
  const { folder, inbox, state, simulator, config } = site;
  const run = (...argv: string[]) => runProgram([...argv, "--config", config]);
  const once = () => run("once");
  expect((await once()).exitCode).toBe(0);
  const backup = join(folder, "backup");
  await cp(inbox, join(backup, "inbox"), { recursive: true, preserveTimestamps: true });
  await cp(state, join(backup, "state"), { recursive: true, preserveTimestamps: true });
  for (const trackingId of LATER) simulator.addTransfer(transferPlan({ trackingId }));
  expect((await once()).exitCode).toBe(0);
  const arrive = (trackingId: string) => simulator.addTransfer(transferPlan({ trackingId }));
  const rewrite = (changed: object) => site.rewrite({ ...keys, ...changed });
  return { ...site, rewrite, work: join(inbox, ".inlet"), backup, run, once, arrive };
}

/** `inlet run` as a process of its own. */
function startDaemon(config: string) {
  const daemon = startProgram(["run", "--config", config]);
  return { daemon, logged: logOf(daemon) };
}

type Site = Awaited<ReturnType<typeof setUp>>;

async function delivered(inbox: string, mailbox = MAILBOX): Promise<string[]> {
  const folder = join(inbox, mailbox, "anna@supplier.example");
  return (await readdir(folder).catch(() => [])).toSorted();
}

/** As `cp -a`, or as `rsync -a --exclude '.*'`. */
function copy(from: string, to: string, hasDots: boolean): Promise<void> {
  const filter = (path: string) => hasDots || !/\/\.[^/]*$/.test(path);
  return cp(from, to, { recursive: true, preserveTimestamps: true, filter });
}

/** What is done to the folders. Returns the path of the inbox if that changes. */
type Change = (site: Site) => Promise<unknown>;

/** Returns the path of the inbox from then on. */
async function make(change: Change, site: Site): Promise<string> {
  const moved = await change(site);
  const inbox = typeof moved === "string" ? moved : site.inbox;
  await site.rewrite({ inbox });
  return inbox;
}

const ALL = [...FIRST, ...LATER];

onEngines("nothing is delivered twice, and what is new arrives, without a word", (setUp, chosen) => {
  const CHANGES: readonly [what: string, change: Change][] = [
    [
      "when the inbox is moved whole",
      async ({ folder, inbox }) => {
        await rename(inbox, join(folder, "moved"));
        return join(folder, "moved");
      },
    ],
    [
      "when the inbox is copied whole",
      async ({ folder, inbox }) => {
        await copy(inbox, join(folder, "moved"), true);
        await rm(inbox, { recursive: true });
        return join(folder, "moved");
      },
    ],
    ["when the state is lost", ({ state }) => rm(state, { recursive: true })],
    [
      "when the state is restored",
      async ({ state, backup }) => {
        await rm(state, { recursive: true });
        await copy(join(backup, "state"), state, true);
      },
    ],
  ];
  test.each(chosen(CHANGES))("%s", async (_what, change) => {
    const site = await setUp();
    const inbox = await make(change, site);
    site.arrive("new");
    expect((await site.once()).exitCode).toBe(0);
    expect(await delivered(inbox)).toEqual([...ALL, "new"].toSorted());
  });
});

onEngines("nothing is written until an operator has said adopt or anew", (setUp, chosen) => {
  const move: Change = async ({ folder }) => join(folder, "moved");
  const moveCopied: Change = async ({ folder, inbox }) => {
    await copy(inbox, join(folder, "moved"), false);
    return join(folder, "moved");
  };
  const restoreWithoutDots: Change = async ({ inbox, backup }) => {
    await rm(inbox, { recursive: true });
    await copy(join(backup, "inbox"), inbox, false);
  };
  const loseWork: Change = ({ work }) => rm(work, { recursive: true });
  const restoreWork: Change = async ({ work, backup }) => {
    await rm(work, { recursive: true });
    await copy(join(backup, "inbox/.inlet"), work, true);
  };
  const restoreInbox: Change = async ({ inbox, backup }) => {
    await rm(inbox, { recursive: true });
    await copy(join(backup, "inbox"), inbox, true);
  };
  /** `again`: the transfers that anew delivers. */
  const CHANGES: readonly [what: string, change: Change, again: readonly string[]][] = [
    ["when the inbox is another folder", move, ALL],
    ["when the inbox is copied without its dot-folders", moveCopied, ALL],
    ["when the inbox is restored without its dot-folders", restoreWithoutDots, ALL],
    ["when the work folder is lost", loseWork, ALL],
    ["when the work folder is restored", restoreWork, LATER],
    ["when the inbox is restored with its work folder", restoreInbox, LATER],
  ];

  const adopts = chosen(CHANGES).map(([what, change]) => [what, change] as const);
  test.each(adopts)("%s, and adopt delivers only what is new", async (_what, change) => {
    const { site, inbox, before } = await refuse(change);
    expect(await site.run("adopt")).toMatchObject({ exitCode: 3, stderr: expect.stringContaining("--yes") });
    expect((await site.once()).exitCode).toBe(3);
    expect((await site.run("adopt", "--yes")).exitCode).toBe(0);
    expect((await site.once()).exitCode).toBe(0);
    expect(await delivered(inbox)).toEqual(before);
    expect((await site.run("history", "--actions")).stdout).toMatch(/\tadopt\t/);
    site.arrive("new");
    expect((await site.once()).exitCode).toBe(0);
    expect(await delivered(inbox)).toEqual([...before, "new"].toSorted());
    expect((await site.run("adopt")).stderr).toContain("Nothing waits");
    // One that is needed after all.
    expect((await site.run("retry", "u1", "--no-wait")).exitCode).toBe(0);
    expect((await site.once()).exitCode).toBe(0);
    expect(await delivered(inbox)).toEqual(
      [...before, "new", before.includes("u1") ? "u1-2" : "u1"].toSorted(),
    );
  });

  test.each(chosen(CHANGES))(
    "%s, and anew delivers everything that has no record",
    async (_what, change, again) => {
      const { site, inbox, before } = await refuse(change);
      expect((await site.run("anew", "--yes")).exitCode).toBe(0);
      expect((await site.once()).exitCode).toBe(0);
      const twice = again.map((trackingId) => (before.includes(trackingId) ? `${trackingId}-2` : trackingId));
      expect(await delivered(inbox)).toEqual([...before, ...twice].toSorted());
    },
  );

  const before: readonly [what: string, change: Change, code: string, counted: boolean][] = [
    ["in another folder", move, "WORK_LOST", true],
    ["in a copy without dot-folders", moveCopied, "WORK_LOST", true],
    ["without its work folder", loseWork, "WORK_LOST", false],
    ["with an older work folder", restoreWork, "WORK_RESTORED", false],
  ];
  test.each(before)(
    "doctor and config check say so before a start %s",
    async (_what, change, code, counted) => {
      const site = await setUp();
      const check = () => site.run("config", "check", "--json");
      expect(JSON.parse((await check()).stdout).warnings).toEqual([]);
      await make(change, site);
      const { happened, advice } = FAULT_CODES[code as "WORK_LOST"];
      const doctor = await site.run("doctor", "--json");
      const { findings } = JSON.parse(doctor.stdout);
      const found = findings.find(({ check, status }: Finding) => check === "work" && status === "failed");
      expect(found).toMatchObject({ detail: expect.stringContaining(happened), advice });
      const checked = await check();
      const [warning] = JSON.parse(checked.stdout).warnings;
      expect([checked.exitCode, warning]).toEqual([0, `${found.detail}. ${advice}`]);
      const { stderr } = await site.run("adopt");
      const text = `; 23 transfers were delivered to ${site.inbox} before`;
      for (const shown of [found.detail, warning, stderr]) expect(shown.includes(text)).toBe(counted);
      expect((await site.run("adopt", "--yes")).exitCode).toBe(0);
      expect(JSON.parse((await check()).stdout).warnings).toEqual([]);
      expect((await site.run("doctor")).stdout).not.toContain(happened);
    },
  );

  async function refuse(change: Change) {
    const site = await setUp();
    const inbox = await make(change, site);
    const before = await delivered(inbox);
    const { exitCode, stderr } = await site.once();
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/inlet adopt or inlet anew/)]);
    expect(await delivered(inbox)).toEqual(before);
    return { site, inbox, before };
  }
});

const ONE_PROBLEM = "what may have been delivered waits for a word as one problem, and what is new arrives";

onEngines(ONE_PROBLEM, (setUp, chosen) => {
  const loseBoth: Change = async ({ work, state }) => {
    await rm(work, { recursive: true });
    await rm(state, { recursive: true });
  };
  const copyAlone: Change = async ({ folder, inbox, state }) => {
    await copy(inbox, join(folder, "moved"), false);
    await rm(state, { recursive: true });
    return join(folder, "moved");
  };
  const restoreBoth: Change = async ({ work, state, backup }) => {
    for (const folder of [work, state]) await rm(folder, { recursive: true });
    await copy(join(backup, "inbox/.inlet"), work, true);
    await copy(join(backup, "state"), state, true);
  };
  const CHANGES: readonly [what: string, change: Change, doubtful: readonly string[]][] = [
    ["when work and state are lost", loseBoth, ALL],
    ["when the inbox is copied without its dot-folders, and the state is lost", copyAlone, ALL],
    ["when work and state are restored from a backup", restoreBoth, LATER],
  ];

  test.each(chosen(CHANGES))("%s, and adopt leaves it out", async (_what, change, doubtful) => {
    const { site, inbox } = await doubt(change, doubtful);
    expect((await site.run("adopt", "--yes")).exitCode).toBe(0);
    expect((await site.once()).exitCode).toBe(0);
    expect(await site.once()).toMatchObject({ exitCode: 0 });
    expect(await delivered(inbox)).toEqual([...ALL, "new"].toSorted());
    expect((await site.run("adopt", "--yes")).stderr).toContain("Nothing waits");
  });

  test.each(chosen(CHANGES))("%s, and anew delivers it once more", async (_what, change, doubtful) => {
    const { site, inbox } = await doubt(change, doubtful);
    expect((await site.run("anew", "--yes")).exitCode).toBe(0);
    expect((await site.once()).exitCode).toBe(0);
    const twice = doubtful.map((trackingId) => `${trackingId}-2`);
    expect(await delivered(inbox)).toEqual([...ALL, "new", ...twice].toSorted());
    expect((await site.once()).exitCode).toBe(0);
    expect(await delivered(inbox)).toHaveLength(ALL.length + 1 + twice.length);
  });

  async function doubt(change: Change, doubtful: readonly string[]) {
    const site = await setUp();
    const inbox = await make(change, site);
    // The first start after a loss notes what is listed then.
    expect((await site.once()).exitCode).toBe(3);
    site.arrive("new");
    expect((await site.once()).exitCode).toBe(3);
    expect(await delivered(inbox)).toEqual([...ALL, "new"].toSorted());
    const { troubles, totals } = JSON.parse((await site.run("status", "--json")).stdout);
    const message = expect.stringContaining(`: ${doubtful.length} transfers wait.`);
    const advice = expect.stringMatching(/inlet adopt.*inlet anew/);
    expect([troubles, totals.attention]).toEqual([
      [expect.objectContaining({ what: "records", code: "RECORDS_MISSING", message, advice })],
      0,
    ]);
    expect(await site.run("anew")).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining(`${doubtful.length} transfers that may have been delivered`),
    });
    return { site, inbox };
  }
});

test("a mailbox that is delivered elsewhere is refused when it is added to a running daemon", async () => {
  const site = await setUp();
  const other = join(site.folder, "other");
  const box = mailboxKeys("second@example.com");
  await site.rewrite({ inbox: other, mailboxes: [box] });
  expect((await site.once()).exitCode).toBe(0);
  const daemon = startRun(site.config);
  await expect.poll(() => daemon.logged()).toContain('"msg":"ready"');
  await site.rewrite({ inbox: other, mailboxes: [box, mailboxKeys(MAILBOX)] });
  await expect.poll(() => daemon.logged()).toContain("WORK_LOST");
  expect(daemon.logged()).toContain(`; 23 transfers were delivered to ${site.inbox} before`);
  expect(await delivered(other)).toEqual([]);
});

describe("a daemon without its work folder goes on by itself when an operator has decided", {
  tags: ["system"],
}, () => {
  const SOME_POLLS = 5;
  const lose = ({ work, folder }: Site) => rename(work, join(folder, "lost"));

  // They wait most of the time, so both wait at once.
  test.each(["before it was started", "while it ran"])("%s", async (when) => {
    await Promise.all([goOn("adopt", [...ALL, "new"]), goOn("anew", [...ALL, "new", ...ALL.map(again)])]);

    async function goOn(decision: "adopt" | "anew", expected: readonly string[]): Promise<void> {
      const site = await setUp();
      const isRunning = when === "while it ran";
      if (!isRunning) await lose(site);
      const { daemon, logged } = startDaemon(site.config);
      if (isRunning) {
        await expect.poll(logged).toContain('"msg":"ready"');
        await lose(site);
      }
      await expect.poll(logged).toMatch(isRunning ? /FOLDER_MISSING|DISK_REPLACED/ : /WORK_LOST/);
      expect(await delivered(site.inbox)).toEqual(ALL.toSorted());
      const before = site.simulator.totals().received;
      const decide = startProgram([decision, "--yes", "--config", site.config]);
      expect(await finish(decide)).toMatchObject({ exitCode: 0 });
      // What the first list has counts as delivered, if the decision is to adopt.
      await expect.poll(() => site.simulator.totals().received).toBeGreaterThan(before + SOME_POLLS);
      site.arrive("new");
      await expect.poll(() => delivered(site.inbox)).toEqual(expected.toSorted());
      await end(daemon);
      expect((await site.once()).exitCode).toBe(0);
      expect(await delivered(site.inbox)).toEqual(expected.toSorted());
    }
  });

  const again = (trackingId: string) => `${trackingId}-2`;
});

test.each(["lab", MAILBOX])(
  "two mailboxes that have swapped their names are decided apart, by the name %s",
  async (name) => {
    const other = "other@example.com";
    const named = (first: string, second: string) => ({
      mailboxes: [
        { ...mailboxKeys(MAILBOX), name: first },
        { ...mailboxKeys(other), name: second },
      ],
    });
    const { simulator, inbox, folder, state, config, rewrite } = await install(
      { transfers: [transferPlan({ trackingId: "t1" })] },
      named("orders", "lab"),
    );
    const run = (...argv: string[]) => runProgram([...argv, "--config", config]);
    expect((await run("once")).exitCode).toBe(0);
    await rewrite(named("lab", "orders"));
    expect((await run("once")).exitCode).toBe(0);
    const work = join(inbox, ".inlet");
    const [workBefore, stateBefore] = [join(folder, "work-before"), join(folder, "state-before")];
    await copy(work, workBefore, true);
    await copy(state, stateBefore, true);
    simulator.addTransfer(transferPlan({ trackingId: "t2" }));
    simulator.addTransfer(transferPlan({ trackingId: "t3", to: [other] }));
    expect((await run("once")).exitCode).toBe(0);
    for (const [from, to] of [
      [workBefore, work],
      [stateBefore, state],
    ] as const) {
      await rm(to, { recursive: true });
      await copy(from, to, true);
    }
    const waiting = async () => {
      const { stdout } = await run("list", "--state", "waiting", "--json");
      const views = stdout.split("\n").filter(Boolean);
      return views.map((line) => JSON.parse(line)).map(({ mailbox, trackingId }) => [mailbox, trackingId]);
    };
    const all = async () => [await delivered(inbox, "orders"), await delivered(inbox, "lab")];
    expect((await run("once")).exitCode).toBe(3);
    expect((await waiting()).toSorted()).toEqual([
      ["lab", "t2"],
      ["orders", "t3"],
    ]);
    expect((await run("status")).stdout).toMatch(/inlet adopt.*inlet anew/);
    expect((await run("adopt", "--mailbox", "nobody", "--yes")).exitCode).toBe(2);
    expect((await run("adopt", "--mailbox", name, "--yes")).exitCode).toBe(0);
    expect((await run("once")).exitCode).toBe(3);
    expect(await waiting()).toEqual([["orders", "t3"]]);
    expect(await run("adopt", "--mailbox", name)).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining("Nothing waits"),
    });
    expect((await run("adopt", "--mailbox", name === "lab" ? "orders" : other, "--yes")).exitCode).toBe(0);
    simulator.addTransfer(transferPlan({ trackingId: "t4" }));
    expect((await run("once")).exitCode).toBe(0);
    expect(await all()).toEqual([["t1", "t2", "t4"], ["t3"]]);
  },
);
