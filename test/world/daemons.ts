/** The daemons of a world: how they are started, killed, stopped, started again and doubled, and what they are given. */
import { replaceDurably } from "../../src/base/durable.ts";
import { Fault } from "../../src/base/faults.ts";
import { machine } from "../../src/base/machine.ts";
import type { Settings } from "../../src/config/settings.ts";
import { type DaemonOptions, runDaemon } from "../../src/daemon.ts";
import type { loadTokenStores } from "../../src/host/memory.ts";
import type { Vitals } from "../../src/host/systemd.ts";
import type { DaemonEvent } from "../../src/model/events.ts";
import type { KeptToken } from "../../src/model/token.ts";
import type { Metrics } from "../../src/observe/metrics.ts";
import { createEmbeddedQueue } from "../../src/queue/embedded.ts";
import type { Handlers, JobQueue } from "../../src/queue/port.ts";
import { openService } from "../../src/service/service.ts";
import { openModelQueue } from "./engine/engine.ts";
import type { OnChange } from "./ground/disk.ts";
import { Process } from "./ground/process.ts";
import { startMetrics } from "./judge/figures.ts";
import { describeEvent } from "./log.ts";
import type { Happening } from "./plan/plan.ts";
import type { Site } from "./plan/site.ts";
import type { World } from "./world.ts";

const MINUTE_MS = 60_000;
const PATIENCE = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * MINUTE_MS, slowMs: 2 * MINUTE_MS };
const SCAN_MS = 30_000;
const LOCK_MS = 30_000;
const GRACE_MS = 5_000;
/** From the end of the grace until a stopped daemon is killed. */
const KILL_MS = 2_000;
/** All daemons have stopped within this time. */
const STOP_MS = 5 * MINUTE_MS;
/** A single run ends within this time. */
const ONCE_MS = 60 * MINUTE_MS;
/** A daemon that ends by itself is started again, as systemd does. */
const RESTART_MS = 10_000;
const CRON_MS = 3 * MINUTE_MS;
/** Until an operator has noticed that there are two daemons. */
const NOTICE_MS = 1_000;
/** From an attempt to apply a configuration to the next one. */
const APPLY_MS = 30_000;
/** A daemon that refuses its folders for so long waits for a person. */
const REFUSED_MS = MINUTE_MS;
/** Faults of a start that only a person's word ends. */
const REFUSALS: ReadonlySet<string> = new Set(["WORK_LOST", "WORK_RESTORED", "WORK_NOT_OURS"]);

type OpenQueue = NonNullable<DaemonOptions["openQueue"]>;
type TokenStore = ReturnType<Awaited<ReturnType<typeof loadTokenStores>>>;

export interface Daemon {
  readonly process: Process;
  readonly stop: AbortController;
  readonly mode: "run" | "once";
  readonly startedMs: number;
  /** The configuration that it has applied, and since when. */
  site: Site;
  appliedMs: number;
  vitals?: Vitals;
  apply?: (next: Settings) => Promise<void>;
  refused?: (fault: Fault) => void;
  isEnded: boolean;
  /** The code of the fault for which it touches no disk. */
  diskTrouble?: string | undefined;
  /** Only in some worlds. */
  metrics?: Metrics | undefined;
}

export class Daemons {
  readonly #world: World;
  #main: Daemon | undefined;
  /** They share the engine with the main one. */
  readonly #others = new Set<Daemon>();
  /** Works on the same folder although it must not. */
  #second: Daemon | undefined;
  #count = 0;

  #refusedSinceMs: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** How many were started so far. */
  get started(): number {
    return this.#count;
  }

  /** The one that disturbances are meant for, also after its end, until another one takes its place. */
  get main(): Daemon | undefined {
    return this.#main;
  }

  /** The main one while it lives. */
  get running(): Daemon | undefined {
    return this.#main?.process.isDead === false ? this.#main : undefined;
  }

  /** Without a second one that must not be there. */
  get all(): Daemon[] {
    return [this.#main, ...this.#others].filter((daemon) => daemon !== undefined);
  }

  /** The configurations that running daemons have applied. */
  get appliedSites(): Site[] {
    const daemons = [this.#main, this.#second, ...this.#others];
    return daemons.flatMap((daemon) => (daemon?.process.isDead === false ? daemon.site : []));
  }

  /** The daemon touches nothing, and says that a person has to decide. */
  get isRefused(): boolean {
    const { running } = this;
    if (running !== undefined) return REFUSALS.has(running.diskTrouble ?? "");
    const sinceMs = this.#refusedSinceMs;
    return sinceMs !== undefined && this.#world.schedule.nowMs - sinceMs > REFUSED_MS;
  }

  // Starts

  start(): void {
    this.#startMain();
    this.#addOther();
  }

  /** Unless it runs. */
  restartMain(): void {
    if (this.running === undefined) this.#startMain();
  }

  #startMain(): void {
    this.#main = this.#startOne(this.#isCron ? "once" : "run");
  }

  #addOther(): void {
    if (this.#world.site.isShared) this.#others.add(this.#startOne());
  }

  /** Until peace, cron starts it. */
  get #isCron(): boolean {
    return this.#world.plan.isCron === true && !this.#world.isPeace;
  }

  #startOne(mode: Daemon["mode"] = "run"): Daemon {
    const { schedule, site, settings } = this.#world;
    const daemon: Daemon = {
      process: new Process(`daemon ${++this.#count}`, this.#world),
      stop: new AbortController(),
      mode,
      startedMs: schedule.nowMs,
      site,
      appliedMs: schedule.nowMs,
      isEnded: false,
    };
    this.#world.note(`${daemon.process.name} starts`);
    this.#world.calm.disturb(0);
    daemon.metrics = startMetrics(this.#world, daemon);
    const options = this.#optionsOf(daemon);
    daemon.process
      .run(() => runDaemon(settings, options))
      .then(
        () => this.#ended(daemon, undefined),
        (error: unknown) => this.#ended(daemon, error),
      );
    return daemon;
  }

  /** What the program gives to a daemon, with the parts of the world in place of real ones. */
  #optionsOf(daemon: Daemon): DaemonOptions {
    const { process, mode, stop } = daemon;
    const { network, site } = this.#world;
    return {
      mode,
      stop: stop.signal,
      graceMs: GRACE_MS,
      patience: { ...PATIENCE, handoff: { scanMs: SCAN_MS } },
      onEvent: (event) => this.#noteEvent(daemon, event),
      openService: (options) => openService({ ...options, openConnections: network.open(process) }),
      loadTokenStores: async () => (folder) => this.#tokenStore(folder),
      openQueue: this.#queueOpener(daemon, site.isShared),
      host: {
        startReporting: (vitals) => {
          daemon.vitals = vitals;
          return { close: async () => {} };
        },
        reloading: (work) => work(),
      },
      follow: async (apply, refused) => {
        daemon.apply = apply;
        daemon.refused = refused;
        if (daemon.site !== this.#world.site) void this.apply(daemon);
        return { close: async () => {} };
      },
    };
  }

  #queueOpener({ process, mode }: Daemon, isShared: boolean): OpenQueue {
    return async (_queue, options) => {
      const { random } = process;
      if (!isShared) return this.#watchJobs(process, createEmbeddedQueue({ ...options, random }));
      const queue = openModelQueue(this.#world.store, {
        ...options,
        lockMs: LOCK_MS,
        random,
        role: mode === "once" ? "worker" : "all",
        waitForRedis: mode !== "once",
      });
      return this.#watchJobs(process, queue);
    };
  }

  #watchJobs(process: Process, queue: JobQueue): JobQueue {
    const begin = queue.start.bind(queue);
    queue.start = (handlers: Handlers) =>
      begin({
        ...handlers,
        download: async (key, signal, freeSlot) => {
          const end = this.#world.observer.jobBegan(process, key);
          return handlers.download(key, signal, freeSlot).finally(end);
        },
      });
    return queue;
  }

  /** As those of the program, which the package conf would write to the real disk. */
  #tokenStore(folder: string): TokenStore {
    const pathOf = (name: string) => `${folder}/${name}.json`;
    return {
      read: (name) => {
        const text = this.#world.disk.text(pathOf(name));
        return text === undefined ? undefined : (JSON.parse(text) as KeptToken);
      },
      write: (name, token) => replaceDurably(pathOf(name), JSON.stringify(token), 0o600),
    };
  }

  #noteEvent(daemon: Daemon, event: DaemonEvent): void {
    const { process } = daemon;
    const { firsts, requests, observer } = this.#world;
    if (event.type === "disk-failed") daemon.diskTrouble = event.fault.code;
    if (event.type === "disk-recovered") daemon.diskTrouble = undefined;
    if (event.type === "operator-acted") this.#world.troubles.reached(process, "order");
    if (!firsts.has(event.type)) firsts.set(event.type, process.steps);
    if (event.type === "transfer-changed" && event.record.state === "delivered") {
      requests.delivered(event.record.trackingId);
    }
    this.#world.note(() => `${process.name}: ${describeEvent(event)}`);
    daemon.metrics?.listener(event);
    observer.emitted(process, event);
  }

  // Configurations

  /** A daemon that cannot apply the settings now tries again later. */
  async apply(daemon: Daemon): Promise<void> {
    const { process, apply } = daemon;
    if (process.isDead || apply === undefined) return;
    const { settings, site, schedule, calm } = this.#world;
    try {
      await process.run(() => apply(settings));
      daemon.site = site;
      daemon.appliedMs = schedule.nowMs;
      this.#world.note(`${process.name} has applied the configuration`);
    } catch (error) {
      this.#world.note(`${process.name} cannot apply the configuration: ${String(error)}`);
      calm.disturb(APPLY_MS);
      schedule.after(APPLY_MS, () => void this.apply(daemon));
    }
  }

  /** The configuration in force stays, until a person mends the file. */
  refuseSite(daemon: Daemon, ms: number): void {
    this.#world.calm.disturb(ms + MINUTE_MS);
    const fault = new Fault("CONFIG_INVALID", { detail: "mailboxes: is missing" });
    daemon.process.run(() => daemon.refused?.(fault));
    this.#world.schedule.after(ms, () => void this.apply(daemon));
  }

  // Ends

  #ended(daemon: Daemon, error: unknown): void {
    daemon.isEnded = true;
    const { process, mode, stop } = daemon;
    if (process.isDead) return;
    process.onKilled = () => {};
    this.#kill(process);
    this.#world.note(`${process.name} ended${error === undefined ? "" : `: ${String(error)}`}`);
    const isMain = this.#main === daemon;
    if (isMain) this.#noteRefusal(error);
    if (isMain && mode === "once" && this.#isCron && !stop.signal.aborted) {
      this.#world.schedule.after(CRON_MS, () => {
        if (this.#main === daemon) this.restartMain();
      });
      return;
    }
    if (error === undefined || stop.signal.aborted) return;
    if (this.#others.delete(daemon)) this.#world.schedule.after(RESTART_MS, () => this.#addOther());
    else if (isMain) this.#world.schedule.after(RESTART_MS, () => this.restartMain());
  }

  /** Several starts in a row may be refused. The first of them counts. */
  #noteRefusal(error: unknown): void {
    const { code = "" } = (error ?? {}) as { code?: string };
    const isRefusal = REFUSALS.has(code);
    this.#refusedSinceMs = isRefusal ? (this.#refusedSinceMs ?? this.#world.schedule.nowMs) : undefined;
  }

  #kill(process: Process): void {
    process.kill();
    this.#world.requests.forgot(process);
  }

  /** It is killed at one of its next steps, and started again later. */
  plantKill({ process }: Daemon, what: Happening & { kind: "kill" }): void {
    const { afterSteps, inFolder, isPowerCut, downMs, inSite } = what;
    process.stepsToLive = afterSteps;
    process.killsIn = inFolder;
    process.killsAtReads = downMs % 2 !== 0;
    process.onKilled = () => {
      process.onKilled = () => {};
      const { calm, requests, schedule } = this.#world;
      const down = calm.disturb(Number.POSITIVE_INFINITY);
      requests.killed(process);
      this.#world.note(isPowerCut ? "the power is cut" : `${process.name} is killed`);
      if (isPowerCut) this.#cutPower(downMs);
      schedule.after(downMs, () => {
        down.endNow();
        this.#comeBack(inSite);
      });
    };
  }

  #cutPower(downMs: number): void {
    const { calm, disk, observer, random, schedule } = this.#world;
    for (const { process } of this.#others) this.#kill(process);
    calm.powerCut();
    disk.powerCut(random);
    observer.powerCut();
    this.#world.bootedMs = schedule.nowMs + downMs;
  }

  /** All that were killed, perhaps with another configuration. */
  #comeBack(inSite: Site | undefined): void {
    const { isPeace } = this.#world;
    if (isPeace && this.running !== undefined) return;
    if (inSite !== undefined && !isPeace) this.#world.changeSite(inSite);
    this.restartMain();
    for (const each of [...this.#others]) {
      if (!each.process.isDead) continue;
      this.#others.delete(each);
      this.#addOther();
    }
  }

  /**
   * A person stops it, may change what it finds at its next start, and starts it again. The others stay, unless folders are
   * lost.
   */
  stopFor(daemon: Daemon, { downMs, inSite, loss }: Happening & { kind: "stop" }): void {
    const { calm, observer, people, schedule } = this.#world;
    const others = loss === undefined ? [] : [...this.#others];
    const stopped = [daemon, ...others];
    const down = calm.disturb(Number.POSITIVE_INFINITY);
    for (const { stop } of stopped) stop.abort();
    schedule.after(Math.max(downMs, GRACE_MS + KILL_MS), () => {
      for (const { isEnded, process } of stopped) if (!isEnded) this.#kill(process);
      down.endNow();
      if (this.#main !== daemon) return;
      if (loss !== undefined) observer.asOutsider(() => people.lose(loss));
      if (inSite !== undefined) this.#world.changeSite(inSite);
      this.restartMain();
      for (const other of others) if (this.#others.delete(other)) this.#addOther();
    });
  }

  async stopAll(): Promise<void> {
    const { schedule, observer } = this.#world;
    const daemons = this.all.filter(({ process }) => !process.isDead);
    this.#others.clear();
    this.#main = undefined;
    for (const { stop } of daemons) stop.abort();
    await schedule.run(schedule.nowMs + STOP_MS, () => daemons.every(({ isEnded }) => isEnded));
    for (const { process, isEnded } of daemons) {
      if (!isEnded) observer.violate(`${process.name} does not stop`);
      process.kill();
    }
  }

  /** `inlet once`, until it ends. */
  async runOnce(): Promise<void> {
    const daemon = this.#startOne("once");
    await this.#awaitEnd(daemon);
    daemon.process.kill();
  }

  async #awaitEnd(daemon: Daemon): Promise<void> {
    const { schedule, observer } = this.#world;
    await schedule.run(schedule.nowMs + ONCE_MS, () => daemon.isEnded);
    if (!daemon.isEnded) observer.violate("a single run does not end");
  }

  /** Nothing that was planned for a daemon happens any longer, and the main one runs, no longer from cron. */
  async makePeace(): Promise<void> {
    this.#endSecond();
    for (const { process } of this.all) {
      process.stepsToLive = Number.POSITIVE_INFINITY;
      process.stepsToFreeze = Number.POSITIVE_INFINITY;
      process.onKilled = () => {};
    }
    const { running } = this;
    if (running?.mode === "once" && !running.isEnded) await this.#awaitEnd(running);
    this.restartMain();
  }

  // Pauses and doubles

  /** To be called after each change of the disk. A pause ends when that does most harm. */
  saw({ type, path }: Parameters<OnChange>[0]): void {
    const { process } = this.#main ?? {};
    const { schedule } = this.#world;
    if (process?.thawsAt === undefined || process.frozenUntilMs <= schedule.nowMs) return;
    const isAdded = type === "create" || type === "rename";
    const [one, other] = [`${path}/`, `${process.thawsAt}/`];
    const isThere = one.startsWith(other) || other.startsWith(one);
    if (isAdded && isThere && machine() !== process) schedule.thaw(process);
  }

  /** Another daemon on the same folders, although locks should keep it out. There is never more than one. */
  startSecond(ms: number): void {
    const { site, calm, schedule } = this.#world;
    if (site.isShared || this.#second !== undefined) return;
    calm.disturb(ms + MINUTE_MS);
    this.#world.areLocksBroken = true;
    this.#second = this.#startOne();
    schedule.after(ms, () => this.#endSecond());
  }

  #endSecond(): void {
    const second = this.#second;
    if (second === undefined) return;
    this.#second = undefined;
    this.#world.areLocksBroken = false;
    this.#kill(second.process);
    const { running } = this;
    if (running === undefined) return;
    // Its memory may differ from the disk. An operator who finds two daemons starts one of them again.
    this.#kill(running.process);
    this.#world.schedule.after(NOTICE_MS, () => this.restartMain());
  }
}
