/**
 * A work folder and a state folder as a version of Inlet wrote them. `node test/support/work-fixture.ts` writes those of this
 * checkout into `test/fixtures/work-format-N.tar.gz`. A tarball keeps modes and empty folders.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { openSimulator } from "../../simulator/open.ts";
import type { TransferPlan } from "../../simulator/scenario.ts";
import { ROOT } from "./root.ts";
import { MAILBOX, PASSWORD } from "./settings.ts";

const run = promisify(execFile);

export const FIXTURES = join(ROOT, "test/fixtures");
/** The service of the fixture, which records of password attempts name. */
const PORT = 18_460;
export const FIXTURE_SERVICE = `http://127.0.0.1:${PORT}`;

/** The states of the transfers in the fixture. */
export const FIXTURE_STATES = {
  "to-deliver": "delivered",
  "to-redeliver": "delivered",
  "to-hand-over": "delivered",
  "to-pick-up": "picked-up",
  "to-wait": "waiting",
  "to-quarantine": "quarantined",
  "to-discard": "gone",
} as const;

/** They expire in 50 years, so that retention leaves their records. */
export const FIXTURE_TRANSFERS: readonly TransferPlan[] = Object.keys(FIXTURE_STATES).map((trackingId) => ({
  trackingId,
  from: trackingId === "to-hand-over" ? "carl@third.example" : "anna@supplier.example",
  to: [MAILBOX],
  subject: "Order 4711",
  message: "Please confirm.",
  password: trackingId === "to-wait" ? "Another-1" : PASSWORD,
  expiresInSeconds: 50 * 365 * 24 * 3_600,
  files: [
    {
      name: "a.txt",
      text: `Hello ${trackingId}`,
      csvChecksum: /quarantine|discard/.test(trackingId) ? "wrong" : "right",
    },
  ],
}));

export interface FixtureOptions {
  /** Holds inbox and state. */
  readonly folder: string;
  readonly service: { readonly url: string; readonly clientId: string };
  /** Of the hand-off, which fails in the fixture. */
  readonly command: readonly string[];
}

/** Writes a configuration, and returns its path. */
export async function configureFixture({ folder, service, command }: FixtureOptions): Promise<string> {
  const config = join(folder, "inlet.yaml");
  const keys = {
    service: { baseUrl: service.url, clientId: service.clientId },
    inbox: join(folder, "inbox"),
    state: join(folder, "state"),
    limits: { minFreeSpace: "1KiB" },
    keep: { history: "forever" },
    http: { listen: false },
    mailboxes: [
      {
        email: MAILBOX,
        passwords: [{ sender: "*", password: PASSWORD }],
        routes: [{ name: "third", sender: "*@third.example", handoff: { command } }],
      },
    ],
  };
  await writeFile(config, JSON.stringify(keys), { mode: 0o600 });
  return config;
}

async function makeFixture(folder: string): Promise<void> {
  const service = await openSimulator({ transfers: FIXTURE_TRANSFERS }, { port: PORT });
  try {
    const config = await configureFixture({ folder, service, command: ["false"] });
    const inlet = async (...args: readonly string[]) => {
      const command = [join(ROOT, "bin/inlet.cjs"), ...args, "--config", config];
      // Its exit code says that some transfers need a person.
      const { stdout } = await run(process.execPath, command).catch((error) => error);
      process.stdout.write(stdout);
    };
    await inlet("once");
    await rm(join(folder, "inbox", MAILBOX, "anna@supplier.example/to-pick-up"), { recursive: true });
    await inlet("redeliver", "to-redeliver", "--yes");
    await inlet("discard", "to-discard", "--yes");
    await inlet("once");
    await inlet("list");
  } finally {
    await service.close();
  }
  const owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name"];
  const format = Number.parseInt(await readFile(join(folder, "inbox/.inlet/format"), "utf8"), 10);
  const target = join(FIXTURES, `work-format-${format}.tar.gz`);
  await run("tar", ["-czf", target, ...owner, "-C", folder, "inbox", "state"]);
}

if (import.meta.main) {
  const folder = await mkdtemp(join(tmpdir(), "inlet-fixture-"));
  try {
    await makeFixture(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
