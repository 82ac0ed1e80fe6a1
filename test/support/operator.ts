/** An installation with a daemon, and an operator who runs commands. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import { type RunningCommand, startRun } from "./command.ts";
import { install, mailboxKeys } from "./installation.ts";
import { type Finished, type RunOptions, runProgram } from "./program.ts";
import { MAILBOX } from "./settings.ts";

/** `keys`: as for `install`; by default the mailbox allows four password attempts. */
export async function openSite(scenario: Scenario = {}, keys: object = {}) {
  const mailboxes = [{ ...mailboxKeys(MAILBOX), passwordAttempts: 4 }];
  const installation = await install(scenario, { mailboxes, ...keys });
  const { config, inbox } = installation;
  /** `line`: a command as people type it. */
  const inlet = (line: string, options: RunOptions = {}) =>
    runProgram([...line.split(" "), "--config", config], options);
  const journal = async () => {
    const folder = join(inbox, ".inlet/journal");
    const names = await readdir(folder).catch(() => []);
    return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("");
  };
  const deliveriesOf = async (mailbox: string) =>
    (await readdir(join(inbox, mailbox, "anna@supplier.example")).catch(() => [])).toSorted();
  /** Starts a daemon, and returns when it is ready. */
  const run = async (env?: Readonly<Record<string, string>>): Promise<RunningCommand> => {
    const daemon = startRun(config, env);
    await expect.poll(daemon.logged).toContain('"ready"');
    return daemon;
  };
  /** Of each transfer, from its newest line of the journal. */
  const states = async (): Promise<Record<string, string>> => {
    const lines = (await journal()).split("\n").filter(Boolean);
    const entries = lines.map((line) => JSON.parse(line)).filter(({ state }) => state !== undefined);
    return Object.fromEntries(entries.map(({ trackingId, state }) => [trackingId, state]));
  };
  return {
    ...installation,
    mailboxes,
    inlet,
    journal,
    run,
    states,
    /** Starts a daemon, and returns when the transfers are in these states. */
    async runUntil(wanted: Record<string, string>): Promise<void> {
      await run();
      await expect.poll(states).toEqual(wanted);
    },
    /** Runs a command, and expects its exit code and messages. */
    async expectInlet(
      line: string,
      exitCode: number,
      said: string | RegExp,
      options?: RunOptions,
    ): Promise<Finished> {
      const finished = await inlet(line, options);
      const messages = typeof said === "string" ? expect.stringContaining(said) : expect.stringMatching(said);
      expect([finished.exitCode, finished.stderr]).toEqual([exitCode, messages]);
      return finished;
    },
    deliveries: () => deliveriesOf(MAILBOX),
    deliveriesOf,
  };
}
