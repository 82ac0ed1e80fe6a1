/** The environment of a case: the simulated service, Redis if needed, daemons, and a meter of all processes. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Role, type RunningDaemon, startDaemon } from "../support/daemons.ts";
import { type RunningRedis, startRedis } from "../support/redis.ts";
import { type RunningSimulator, type SimulatedTransfers, startSimulator } from "../support/simulator.ts";
import { Meter } from "./meter.ts";

export interface Bench {
  readonly launcher: string;
  /** Must not exist yet; a case creates and removes it. */
  readonly folder: string;
  readonly scale: number;
  readonly stop: AbortSignal;
}

export interface WorldPlan {
  readonly isShared: boolean;
  readonly scenario: SimulatedTransfers;
  /** As in the configuration. */
  readonly mailboxes: readonly { readonly email: string; readonly poll?: string }[];
  /** `limits.transfers`. */
  readonly slots?: number;
  onRequest?(line: string): void;
}

/** Dispose it to end all its processes and remove its folder. */
export interface World extends AsyncDisposable {
  readonly inbox: string;
  readonly work: string;
  readonly simulator: RunningSimulator;
  readonly redis: RunningRedis | undefined;
  readonly meter: Meter;
  /** Does not wait until the daemon is ready. */
  start(role: Role): RunningDaemon;
  startReady(role: Role): Promise<RunningDaemon>;
  /** Waits for a condition. Throws if a daemon ends, or if it takes too long. */
  until(what: string, condition: () => boolean | Promise<boolean>): Promise<void>;
}

export const PASSWORD = "Sunny+Harbour%42";

const LOOK_EVERY_MS = 50;
const LONGEST_MS = 10 * 60_000;

export async function openWorld(bench: Bench, plan: WorldPlan): Promise<World> {
  const { launcher, folder, stop } = bench;
  stop.throwIfAborted();
  await using opening = new AsyncDisposableStack();
  mkdirSync(folder);
  opening.defer(() => rmSync(folder, { recursive: true, force: true }));
  const meter = opening.use(new Meter());
  const simulator = opening.use(await startSimulator(launcher, folder, plan.scenario, plan.onRequest));
  meter.watch("service", simulator.pid);
  const redis = plan.isShared ? opening.use(await startRedis(folder)) : undefined;
  if (redis !== undefined) meter.watch("Redis", redis.pid);
  const config = join(folder, "inlet.yaml");
  writeFileSync(config, JSON.stringify(describeConfig(plan, simulator, redis)), { mode: 0o600 });

  const daemons: RunningDaemon[] = [];
  const until: World["until"] = async (what, condition) => {
    const latestMs = performance.now() + LONGEST_MS;
    while (!(await condition())) {
      stop.throwIfAborted();
      const failed = daemons.find((daemon) => daemon.hasFailed());
      if (failed !== undefined) throw new Error(`a daemon has ended: ${failed.warnings.join("; ")}`);
      if (performance.now() > latestMs) throw new Error(`this takes too long: ${what}`);
      await pause(LOOK_EVERY_MS);
    }
  };
  const closing = opening.move();
  const start: World["start"] = (role) => {
    const socket = join(folder, `page-${daemons.length}`);
    const daemon = closing.use(startDaemon(launcher, config, role, socket));
    daemons.push(daemon);
    meter.watch(role === "scheduler" ? "scheduler" : "worker", daemon.pid);
    return daemon;
  };
  return {
    inbox: join(folder, "inbox"),
    work: join(folder, "work"),
    simulator,
    redis,
    meter,
    start,
    async startReady(role) {
      const daemon = start(role);
      await until(`the ${role} to be ready`, () => daemon.loggedMs("ready") !== undefined);
      return daemon;
    },
    until,
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** JSON is YAML too. Settings that differ between daemons come from the environment. */
function describeConfig(
  { mailboxes, slots }: WorldPlan,
  { url, clientId }: RunningSimulator,
  redis: RunningRedis | undefined,
) {
  const passwords = [{ sender: "*", password: PASSWORD }];
  return {
    service: { baseUrl: url, clientId },
    inbox: "inbox",
    work: "work",
    state: "state",
    queue: redis?.url ?? "embedded",
    ...(slots === undefined ? {} : { limits: { transfers: slots } }),
    mailboxes: mailboxes.map((mailbox) => ({
      ...mailbox,
      fetch: "files",
      layout: "{trackingId}",
      passwords,
    })),
  };
}
