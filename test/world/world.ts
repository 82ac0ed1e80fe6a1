/**
 * One world: the whole daemon, its disk, its service, consumers, operators and changes of its configuration, all from one
 * seed. `checks.ts` says what must hold.
 */
import { hash } from "node:crypto";
import { machine } from "../../src/base/machine.ts";
import { Secret } from "../../src/base/secret.ts";
import type { ProgramEnd, ProgramStart } from "../../src/base/system-program.ts";
import { loadSettings } from "../../src/config/load.ts";
import type { Settings } from "../../src/config/settings.ts";
import { runDaemon } from "../../src/daemon.ts";
import type { Vitals } from "../../src/host/systemd.ts";
import { peekLedger } from "../../src/ledger/peek.ts";
import type { DaemonEvent } from "../../src/model/events.ts";
import { serviceIdOf } from "../../src/model/mailbox.ts";
import type { TransferAct } from "../../src/model/order.ts";
import { type TransferRecord, waitsForPassword } from "../../src/model/record.ts";
import { type ActTools, objectionToAct, submitAct, supplyPassword } from "../../src/operate/act.ts";
import { createEmbeddedQueue } from "../../src/queue/embedded.ts";
import type { Handlers, JobQueue } from "../../src/queue/port.ts";
import { failure, type OnChange, SimulatedDisk } from "./disk.ts";
import { Observer } from "./observer.ts";
import {
  formatSite,
  type Happening,
  INBOX,
  OUTSIDE,
  type Plan,
  type Site,
  STATE,
  UNREST_MS,
  WORK,
} from "./plan.ts";
import { type Ground, Process, START_MS, type Step } from "./process.ts";
import { Random } from "./random.ts";
import { Schedule } from "./schedule.ts";
import { type SentTransfer, SimulatedService } from "./service.ts";

const MINUTE_MS = 60_000;
/** From the end of all disturbances until everything must be at rest: longer than the longest pause between attempts. */
const PEACE_MS = 150 * MINUTE_MS;
/** For this long nothing must be open before the world counts as at rest: longer than the pauses of regular clean-up. */
const QUIET_MS = 16 * MINUTE_MS;
/** The same if nothing is left for the clean-up. */
const SHORT_QUIET_MS = 3 * MINUTE_MS;
const OPERATOR = { who: "anna", from: "desk" };
/** The user id of consumers. */
const CONSUMER = 4_000;
const PATIENCE = { retryMs: 5_000, diskMs: 30_000, lockedMs: 15 * MINUTE_MS, slowMs: 2 * MINUTE_MS };
/** A daemon that ends by itself is started again, as systemd does. */
const RESTART_MS = 10_000;

export interface Daemon {
  readonly process: Process;
  readonly stop: AbortController;
  /** The configuration that it has applied. */
  site: Site;
  vitals?: Vitals;
  apply?: (next: Settings) => Promise<void>;
  isEnded: boolean;
}

/** The exit code of a check that gives no verdict. */
const UNDECIDED = 75;

interface Trouble {
  type: Step["type"] | "any";
  readonly process: Process;
  readonly fromStep: number;
  /** It begins with a step in this folder of ours, after so many others in it. */
  readonly inFolder: string | undefined;
  skips: number;
  left: number;
}

export class World implements Ground {
  readonly plan: Plan;
  readonly schedule = new Schedule(START_MS);
  readonly disk = new SimulatedDisk(() => this.schedule.nowMs);
  readonly random: Random;
  readonly service: SimulatedService;
  readonly observer: Observer;
  readonly locks: Ground["locks"] = new Map();
  readonly watches: Ground["watches"] = new Set();
  areLocksBroken = false;
  /** What happened, for people. */
  readonly log: string[] = [];
  /** How many steps a daemon had done when it first emitted each type of event. */
  readonly firsts = new Map<string, number>();
  site: Site;
  daemon: Daemon | undefined;
  readonly #others = new Set<Daemon>();
  /** Works on the same folder although it must not. */
  #second: Daemon | undefined;
  readonly #operator: Process;
  readonly #settings = new Map<Site, Settings | undefined>();
  #troubles: Trouble[] = [];
  #exitCodes = { check: 0, command: 0 };
  /** Whether the check spoils content of which it gives no verdict. */
  #spoils = true;
  #isReceiverAway = false;
  #isPeace = false;
  #daemons = 0;

  constructor(plan: Plan) {
    this.plan = plan;
    this.site = plan.site;
    this.random = new Random(plan.seed ^ 0x5eed);
    this.service = new SimulatedService(plan, this.random.fork(), () => this.schedule.nowMs);
    this.observer = new Observer(this);
    this.service.onPassword = (transfer, password) => this.observer.passwordSent(transfer, password);
    // It is listed before it arrives.
    for (const transfer of plan.transfers) if (plan.habits?.ignoresActive) transfer.state = "processing";
    this.#operator = new Process("operator", this);
    for (const folder of ["/data", STATE, OUTSIDE, "/taken"]) this.disk.prepare(folder, 0o755, 0);
    this.disk.onChange = (change) => {
      this.observer.changed(change);
      this.#endPause(change);
    };
  }

  /** Runs until nothing is left to do. `isClean`: whether there is also nothing to clean up. */
  async run(isClean: () => Promise<boolean> = async () => false): Promise<void> {
    await this.#loadSites();
    if (this.#settings.get(this.site) === undefined) this.site = { ...this.site, routes: [], handoff: {} };
    await this.#loadSites();
    this.observer.siteApplied(this.site);
    this.#start();
    for (const { atMs, what } of this.plan.happenings) {
      this.schedule.after(atMs, () => this.#happen(what));
    }
    await this.schedule.run(START_MS + (this.plan.unrestMs ?? UNREST_MS));
    await this.#makePeace();
    const endMs = this.schedule.nowMs + PEACE_MS;
    for (let quietMs = 0; this.schedule.nowMs < endMs && quietMs < QUIET_MS; ) {
      await this.schedule.run(this.schedule.nowMs + MINUTE_MS);
      const isFrozen = (this.daemon?.process.frozenUntilMs ?? 0) > this.schedule.nowMs;
      quietMs = this.#isQuiet() && !isFrozen ? quietMs + MINUTE_MS : 0;
      if (quietMs >= SHORT_QUIET_MS && (await isClean())) break;
    }
    this.disk.dropCaches();
  }

  /** Nothing on the disk waits for a time. */
  #isQuiet(): boolean {
    const { disk } = this;
    const notes = disk.names(`${WORK}/notes`).map((name) => disk.text(`${WORK}/notes/${name}`) ?? "");
    const isOpen = notes.some((text) => text.includes('"until":"') || !text.includes('"waiting"'));
    const hasSteps = disk.names(`${WORK}/outbox`).some((name) => name.endsWith(".json"));
    const folders = ["staging", "orders", "new"].flatMap((name) => disk.names(`${WORK}/${name}`));
    return !isOpen && !hasSteps && folders.length === 0;
  }

  /** A regular restart changes nothing. */
  async restart(): Promise<void> {
    await this.#stopAll();
    this.#start();
    await this.schedule.run(this.schedule.nowMs + 3 * MINUTE_MS);
  }

  /** `inlet once`, until it ends. */
  async runOnce(): Promise<void> {
    await this.#stopAll();
    const daemon = this.#startOne(this.settings, "once");
    await this.schedule.run(this.schedule.nowMs + 60 * MINUTE_MS, () => daemon.isEnded);
    if (!daemon.isEnded) this.observer.violate("a single run does not end");
    daemon.process.kill();
  }

  async close(): Promise<void> {
    await this.#stopAll();
  }

  note(text: string): void {
    const ms = Math.round(this.schedule.nowMs - START_MS);
    this.log.push(`${(ms / 1000).toFixed(1).padStart(8)} s  ${text}`);
  }

  /** The configurations that running daemons have applied. */
  get appliedSites(): Site[] {
    const daemons = [this.daemon, this.#second, ...this.#others];
    return daemons.flatMap((daemon) => (daemon?.process.isDead === false ? daemon.site : []));
  }

  get settings(): Settings {
    return this.#settings.get(this.site) as Settings;
  }

  /** Runs work as the operator, who reads and writes the disk without disturbance. */
  asOperator<Result>(work: () => Promise<Result>): Promise<Result> {
    return pump(this.schedule, this.#operator.run(work));
  }

  records(): Promise<TransferRecord[]> {
    return this.asOperator(() => Array.fromAsync(peekLedger({ work: WORK, inbox: INBOX }).all(() => {})));
  }

  // Ground

  disturb(process: Process, step: Step): void {
    if (this.#isPeace || process === this.#operator) return;
    const trouble = this.#troubles.find((each) => strikes(each, process, step));
    if (trouble === undefined) return;
    const { type, path, entry } = step;
    trouble.left--;
    // A disk that fails to sync may also fail to say what it has.
    if (trouble.inFolder !== undefined && trouble.left === 1) trouble.type = "any";
    if (type === "sync" && entry?.kind === "file") entry.failSync();
    this.note(`the disk fails: ${type} ${path}`);
    throw failure("EIO", path);
  }

  async runProgram(process: Process, { argv, env }: ProgramStart): Promise<Partial<ProgramEnd>> {
    const isCheck = env["INLET_EVENT"] === "check";
    const exitCode = this.#exitCodes[isCheck ? "check" : "command"];
    this.note(`${process.name} runs ${argv[0]} for ${env["INLET_TRACKING_ID"]}: exit code ${exitCode}`);
    if (!isCheck) this.observer.programRan(argv[0], env["INLET_ID"] ?? "");
    // A check that gives no verdict may have spoilt what it looked at, or left it alone.
    if (isCheck && exitCode === UNDECIDED && this.#spoils) this.#spoil(env["INLET_FOLDER"] ?? "");
    return exitCode === 0 ? {} : { exitCode, why: `it ended with exit code ${exitCode}` };
  }

  #spoil(folder: string): void {
    const name = this.disk.names(folder).find((each) => !each.endsWith(".json") && each !== "SHA256SUMS");
    const entry = name === undefined ? undefined : this.disk.tryGet(`${folder}/${name}`);
    if (entry?.kind === "file") entry.bytes = Buffer.alloc(entry.bytes.length, "?");
  }

  async post(url: URL, body: string): Promise<{ status: number; retryAfter: undefined }> {
    if (this.#isReceiverAway) return { status: 503, retryAfter: undefined };
    if (url.pathname === "/notify") this.observer.notified(JSON.parse(body));
    else this.observer.called(JSON.parse(body));
    return { status: 200, retryAfter: undefined };
  }

  // Daemons

  async #loadSites(): Promise<void> {
    const sites = [this.site, ...this.plan.happenings.map(({ what }) => siteOf(what))];
    for (const site of sites) {
      if (site === undefined || this.#settings.has(site)) continue;
      this.#settings.set(site, await loadSite(site));
    }
  }

  #start(): void {
    const settings = this.settings;
    this.daemon = this.#startOne(settings);
    if (this.site.isShared) this.#others.add(this.#startOne(settings));
  }

  #startOne(settings: Settings, mode: "run" | "once" = "run"): Daemon {
    const process = new Process(`daemon ${++this.#daemons}`, this);
    const stop = new AbortController();
    const daemon: Daemon = { process, stop, site: this.site, isEnded: false };
    this.note(`${process.name} starts`);
    const running = process.run(() =>
      runDaemon(settings, {
        mode,
        stop: stop.signal,
        graceMs: 5_000,
        patience: { ...PATIENCE, handoff: { scanMs: 30_000 } },
        onEvent: (event) => this.#noteEvent(process, event),
        openService: ({ baseUrl }) => this.service.open(process, serviceIdOf(baseUrl)),
        openQueue: async (_queue, { slots, services }) =>
          this.#watchJobs(process, createEmbeddedQueue({ slots, services, random: process.random })),
        host: {
          startReporting: (vitals) => {
            daemon.vitals = vitals;
            return { close: async () => {} };
          },
          reloading: (work) => work(),
        },
        follow: async (apply) => {
          daemon.apply = apply;
          if (daemon.site !== this.site) void this.#applyTo(daemon);
          return { close: async () => {} };
        },
      }),
    );
    running.then(
      () => this.#ended(daemon, undefined),
      (error: unknown) => this.#ended(daemon, error),
    );
    return daemon;
  }

  #watchJobs(process: Process, queue: JobQueue): JobQueue {
    const begin = queue.start.bind(queue);
    const start = (handlers: Handlers) =>
      begin({
        ...handlers,
        download: (key, ...rest) => {
          const ended = this.observer.jobBegan(process, key);
          return handlers.download(key, ...rest).finally(ended);
        },
      });
    return Object.assign(queue, { start });
  }

  #ended(daemon: Daemon, error: unknown): void {
    daemon.isEnded = true;
    daemon.process.onKilled = () => {};
    daemon.process.kill();
    this.note(`${daemon.process.name} ended${error === undefined ? "" : `: ${String(error)}`}`);
    if (error === undefined || daemon.stop.signal.aborted) return;
    if (this.#others.delete(daemon)) this.schedule.after(RESTART_MS, () => void this.#addOther());
    else if (this.daemon === daemon) this.schedule.after(RESTART_MS, () => this.#restartMain());
  }

  #addOther(): void {
    if (this.site.isShared) this.#others.add(this.#startOne(this.settings));
  }

  #restartMain(): void {
    if (this.daemon === undefined || this.daemon.process.isDead) this.daemon = this.#startOne(this.settings);
  }

  async #stopAll(): Promise<void> {
    const daemons = [this.daemon, ...this.#others].filter(
      (daemon) => daemon !== undefined && !daemon.process.isDead,
    ) as Daemon[];
    this.#others.clear();
    this.daemon = undefined;
    for (const { stop } of daemons) stop.abort();
    await this.schedule.run(this.schedule.nowMs + 5 * MINUTE_MS, () =>
      daemons.every(({ isEnded }) => isEnded),
    );
    for (const { process, isEnded } of daemons) {
      if (!isEnded) this.observer.violate(`${process.name} does not stop`);
      process.kill();
    }
  }

  async #makePeace(): Promise<void> {
    this.note("peace");
    this.#isPeace = true;
    this.#troubles = [];
    this.disk.isFull = false;
    this.areLocksBroken = false;
    this.service.mood = "fine";
    this.service.damaged = undefined;
    this.#exitCodes = { check: 0, command: 0 };
    this.#isReceiverAway = false;
    for (const daemon of [this.daemon, ...this.#others]) {
      if (daemon === undefined) continue;
      daemon.process.stepsToLive = Number.POSITIVE_INFINITY;
      daemon.process.stepsToFreeze = Number.POSITIVE_INFINITY;
      daemon.process.onKilled = () => {};
    }
    if (this.daemon === undefined || this.daemon.process.isDead) this.#restartMain();
  }

  #noteEvent(process: Process, event: DaemonEvent): void {
    if (!this.firsts.has(event.type)) this.firsts.set(event.type, process.steps);
    if (event.type === "transfer-changed" || event.type === "transfer-discovered") {
      const { trackingId, state, reason, mailbox, round } = event.record;
      this.note(`${process.name}: ${trackingId} of ${mailbox} is ${state} ${reason ?? ""} (round ${round})`);
    } else if (
      event.type === "transfer-stuck" ||
      event.type === "poll-failed" ||
      event.type === "order-failed"
    ) {
      this.note(`${process.name}: ${event.type} ${event.fault.message}`);
    } else if (
      !["transfer-progressed", "poll-succeeded", "outbox-scanned", "overdue-listed"].includes(event.type)
    ) {
      this.note(`${process.name}: ${event.type}`);
    }
    this.observer.emitted(event);
  }

  // Happenings

  #happen(what: Happening): void {
    if (this.#isPeace) return;
    this.note(describe(what));
    const daemon = this.daemon?.process.isDead === false ? this.daemon : undefined;
    const transfer = "transfer" in what ? this.plan.transfers[what.transfer] : undefined;
    if (daemon !== undefined) this.#happenTo(daemon, what);
    if (transfer !== undefined) this.#happenWith(transfer, what);
    this.#happenAround(what);
  }

  #happenTo(daemon: Daemon, what: Happening): void {
    const { process } = daemon;
    switch (what.kind) {
      case "kill":
        this.#plantKill(daemon, what);
        break;
      case "stop":
        daemon.stop.abort();
        this.schedule.after(what.downMs, () => {
          if (!daemon.isEnded) process.kill();
          if (this.daemon !== daemon) return;
          if (what.inSite !== undefined) this.#changeSite(what.inSite);
          this.#restartMain();
        });
        break;
      case "freeze":
        process.stepsToFreeze = what.afterSteps;
        process.freezeMs = what.ms;
        process.freezesIn = what.inFolder;
        process.thawsAt = what.until;
        break;
      case "second":
        if (!this.site.isShared) this.#startSecond(what.ms);
        break;
      case "sync-fails":
      case "disk-fails": {
        const type = what.kind === "sync-fails" ? "sync" : "any";
        const { inFolder, afterSteps, times } = what;
        const fromStep = process.steps + (inFolder === undefined ? afterSteps : 0);
        // Not of the digits that have chosen the folder.
        const skips = Math.floor(afterSteps / 24) % 4;
        this.#troubles.push({ type, process, fromStep, inFolder, skips, left: times });
        break;
      }
      default:
    }
  }

  #happenWith(transfer: SentTransfer, what: Happening): void {
    const { trackingId, sender } = transfer;
    switch (what.kind) {
      case "arrive":
        transfer.state = "active";
        break;
      case "vanish":
        if (transfer.state === "active") transfer.state = what.how;
        break;
      case "damage":
        this.service.damaged = transfer.files[0]?.name;
        this.schedule.after(what.ms, () => (this.service.damaged = undefined));
        break;
      case "order":
        this.#act(() => this.#order(what.action, trackingId, what.withPassword));
        break;
      case "password":
        this.#act(() => this.#supply(trackingId, what.isRight));
        break;
      case "consume":
        this.observer.asOutsider(() => this.#consume(trackingId, what.how));
        break;
      case "foreign":
        if (what.isTrap) this.observer.traps.push({ trackingId, number: what.number });
        else this.observer.asOutsider(() => this.#putForeign(trackingId, sender, what.number));
        break;
      default:
    }
  }

  #happenAround(what: Happening): void {
    switch (what.kind) {
      case "site":
        this.#changeSite(what.site);
        break;
      case "disk-full":
        this.disk.isFull = true;
        this.schedule.after(what.ms, () => (this.disk.isFull = false));
        break;
      case "service":
        this.service.mood = what.mood;
        this.schedule.after(what.ms, () => (this.service.mood = "fine"));
        break;
      case "check":
      case "command":
        this.#exitCodes[what.kind] = what.exitCode;
        if (what.kind === "check") this.#spoils = (what.ms / 60_000) % 2 === 0;
        this.schedule.after(what.ms, () => (this.#exitCodes[what.kind] = 0));
        break;
      case "receiver":
        this.#isReceiverAway = true;
        this.schedule.after(what.ms, () => (this.#isReceiverAway = false));
        break;
      default:
    }
  }

  #changeSite(site: Site): void {
    if (this.#settings.get(site) === undefined) {
      this.note("the new configuration is refused");
      return;
    }
    this.site = site;
    this.observer.siteApplied(this.site);
    for (const daemon of [this.daemon, ...this.#others]) if (daemon !== undefined) void this.#applyTo(daemon);
  }

  /** A daemon that cannot apply the settings now tries again later. */
  async #applyTo(daemon: Daemon): Promise<void> {
    const { process, apply } = daemon;
    if (process.isDead || apply === undefined) return;
    const { settings, site } = this;
    try {
      await process.run(() => apply(settings));
      daemon.site = site;
      this.note(`${process.name} has applied the configuration`);
    } catch (error) {
      this.note(`${process.name} cannot apply the configuration: ${String(error)}`);
      this.schedule.after(30_000, () => void this.#applyTo(daemon));
    }
  }

  #plantKill(
    { process }: Daemon,
    { afterSteps, inFolder, isPowerCut, downMs, inSite }: Happening & { kind: "kill" },
  ): void {
    process.stepsToLive = afterSteps;
    process.killsIn = inFolder;
    process.killsAtReads = downMs % 2 !== 0;
    process.onKilled = () => {
      process.onKilled = () => {};
      this.note(isPowerCut ? "the power is cut" : `${process.name} is killed`);
      if (isPowerCut) {
        for (const { process: other } of this.#others) other.kill();
        this.disk.powerCut(this.random);
        this.observer.powerCut();
      }
      this.schedule.after(downMs, () => {
        if (this.#isPeace && this.daemon?.process.isDead === false) return;
        if (inSite !== undefined && !this.#isPeace) this.#changeSite(inSite);
        this.#restartMain();
        for (const each of [...this.#others]) {
          if (!each.process.isDead) continue;
          this.#others.delete(each);
          this.#addOther();
        }
      });
    };
  }

  /** A pause ends when that does most harm. */
  #endPause({ type, path }: Parameters<OnChange>[0]): void {
    const { process } = this.daemon ?? {};
    if (process?.thawsAt === undefined || process.frozenUntilMs <= this.schedule.nowMs) return;
    const isAdded = type === "create" || type === "rename";
    const [one, other] = [`${path}/`, `${process.thawsAt}/`];
    const isThere = one.startsWith(other) || other.startsWith(one);
    if (isAdded && isThere && machine() !== process) this.schedule.thaw(process);
  }

  #startSecond(ms: number): void {
    this.areLocksBroken = true;
    const second = this.#startOne(this.settings);
    this.#second = second;
    this.schedule.after(ms, () => {
      this.areLocksBroken = false;
      second.process.kill();
      const { daemon } = this;
      if (daemon === undefined || daemon.process.isDead) return;
      // Its memory may differ from the disk. An operator who finds two daemons starts one of them again.
      daemon.process.kill();
      this.schedule.after(1_000, () => this.#restartMain());
    });
  }

  // People

  /** The operator's command may fail: then nothing was promised. */
  #act(work: () => Promise<void>): void {
    this.#operator.run(work).catch((error: unknown) => this.note(`the command fails: ${String(error)}`));
  }

  get #acts(): ActTools {
    const { mailboxes } = this.settings;
    return {
      work: WORK,
      inbox: INBOX,
      state: STATE,
      mailboxes,
      asOwner: (_folder, write) => write(),
      isRunning: async () => true,
    };
  }

  async #order(action: TransferAct & string, trackingId: string, withPassword: boolean): Promise<void> {
    const act = action as Exclude<TransferAct, "password" | "grant">;
    for (const record of await peekLedger({ work: WORK, inbox: INBOX }).findAll(trackingId)) {
      const objection = await objectionToAct(this.#acts, act, record);
      this.note(`the operator: ${act} ${trackingId} of ${record.mailbox}: ${objection?.detail ?? "given"}`);
      if (objection !== undefined) continue;
      await submitAct(this.#acts, act, record, OPERATOR);
      if (withPassword && act === "retry") await this.#supplyFor(record, true);
      this.observer.ordered(act, record, withPassword && act === "retry");
    }
  }

  async #supply(trackingId: string, isRight: boolean): Promise<void> {
    for (const record of await peekLedger({ work: WORK, inbox: INBOX }).findAll(trackingId)) {
      if (waitsForPassword(record)) await this.#supplyFor(record, isRight);
    }
  }

  async #supplyFor(record: TransferRecord, isRight: boolean): Promise<void> {
    const right = this.plan.transfers.find((each) => each.trackingId === record.trackingId)?.password ?? "";
    const password = new Secret(isRight ? right : "Secret-wrong");
    this.observer.supplying.add(`${record.trackingId} ${password.reveal()}`);
    await supplyPassword(this.#acts, [record], OPERATOR, password, false);
    this.note(`the operator supplies a ${isRight ? "right" : "wrong"} password for ${record.trackingId}`);
    this.observer.supplied(record, isRight);
  }

  #consume(trackingId: string, how: "take" | "acknowledge"): void {
    for (const delivery of this.observer.deliveries.filter((each) => each.trackingId === trackingId)) {
      for (const path of delivery.paths) {
        const entry = this.disk.tryGet(path);
        if (entry === undefined) continue;
        if (how === "take") {
          this.disk.rename(path, `/taken/${hash("sha1", `${path} ${this.schedule.nowMs}`).slice(0, 12)}`);
        } else if (entry.kind === "folder") {
          this.disk.open(`${path}/ok.txt`, "a", 0o644, CONSUMER).close();
        }
      }
    }
  }

  /** Something that is not ours, where a delivery may go. */
  #putForeign(trackingId: string, sender: string, number: number): void {
    const parent = `${INBOX}/${this.site.box}/${sender}`;
    const folder = `${parent}/${trackingId}`;
    const paths = [folder, `${folder}.transfer.json`, `${folder}.done`, `${INBOX}/urgent/${trackingId}`];
    if (number === 5) {
      if (this.disk.tryGet(parent)?.kind !== "folder") return;
      this.disk.rename(parent, `/taken/${hash("sha1", `${parent} ${this.schedule.nowMs}`).slice(0, 12)}`);
      this.disk.symlink(OUTSIDE, parent, CONSUMER);
      this.schedule.after(MINUTE_MS, () => this.observer.asOutsider(() => this.disk.unlink(parent)));
      return;
    }
    const path = paths[number % paths.length] as string;
    this.observer.putForeign(path, CONSUMER);
  }
}

function siteOf(what: Happening): Site | undefined {
  if (what.kind === "site") return what.site;
  return "inSite" in what ? what.inSite : undefined;
}

function describe(what: Happening): string {
  const { kind, ...facts } = what;
  return `${kind} ${JSON.stringify(facts)}`;
}

const loaded = new Map<string, Promise<Settings | undefined>>();
const MAX_LOADED = 10_000;

/** `undefined` if the program refuses the configuration. */
function loadSite(site: Site): Promise<Settings | undefined> {
  const text = formatSite(site);
  const known = loaded.get(text);
  if (known !== undefined) return known;
  if (loaded.size > MAX_LOADED) loaded.clear();
  const disk = new SimulatedDisk(() => START_MS);
  disk.prepare("/etc/inlet", 0o755, 0);
  disk.open("/etc/inlet/inlet.yaml", "w", 0o600, 0).write(text);
  const schedule = new Schedule(START_MS);
  const ground = { schedule, disk, random: new Random(1), disturb: () => {} } as unknown as Ground;
  const process = new Process("loader", ground);
  const settings = process
    .run(() => loadSettings({ path: "/etc/inlet/inlet.yaml", env: {}, uid: 0 }))
    .catch(() => undefined);
  const loading = pump(schedule, settings);
  loaded.set(text, loading);
  return loading;
}

/** Lets time pass until the work is done. */
async function pump<Result>(schedule: Schedule, work: Promise<Result>): Promise<Result> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  void work.then(end, end);
  while (!isOver) await schedule.run(schedule.nowMs + MINUTE_MS, () => isOver);
  return work;
}

/** Whether a trouble of the disk meets this step. Counts the steps before it. */
function strikes(trouble: Trouble, process: Process, { type, path }: Step): boolean {
  const isMet = trouble.process === process && process.steps >= trouble.fromStep && trouble.left > 0;
  if (!isMet || (trouble.type !== "any" && trouble.type !== type)) return false;
  const { inFolder } = trouble;
  if (trouble.skips < 0 || inFolder === undefined) return true;
  return path.includes(`/${inFolder}`) && trouble.skips-- <= 0;
}
