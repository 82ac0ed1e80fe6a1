/**
 * One world: the whole daemon, its disk, its services, consumers, operators and changes of its configuration, all from one
 * seed. `observer.ts`, `secrets.ts` and `truth.ts` judge what happens, `checks.ts` what it has come to at the end.
 */
import type { ProgramEnd, ProgramStart } from "../../src/base/system-program.ts";
import { loadSettings } from "../../src/config/load.ts";
import type { Settings } from "../../src/config/settings.ts";
import { peekLedger } from "../../src/ledger/peek.ts";
import { DECISIONS } from "../../src/model/order.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { type Daemon, Daemons } from "./daemons.ts";
import { SharedStore } from "./engine/store.ts";
import { SimulatedDisk } from "./ground/disk.ts";
import { type Ground, PROGRAM_MS, Process, START_MS, type Step } from "./ground/process.ts";
import { Random } from "./ground/random.ts";
import { Schedule } from "./ground/schedule.ts";
import type { WatchMood } from "./ground/watches.ts";
import { endAll, happen } from "./happen.ts";
import { Calm } from "./judge/calm.ts";
import { Observer } from "./judge/observer.ts";
import { parseTorn } from "./judge/paths.ts";
import { Rest } from "./judge/rest.ts";
import { Requests } from "./judge/secrets.ts";
import { Truth } from "./judge/truth.ts";
import { describe } from "./log.ts";
import { People } from "./people.ts";
import { type Happening, type Plan, UNREST_MS } from "./plan/plan.ts";
import type { ServiceHabits, StoredTransfer } from "./plan/sent.ts";
import { ADDRESSES, CLIENT_IDS, formatSite, OUTSIDE, PLAIN, type Site, STATE, workOf } from "./plan/site.ts";
import { Network } from "./service/network.ts";
import { WorldService } from "./service/service.ts";
import { Troubles } from "./troubles.ts";

export type { Daemon } from "./daemons.ts";

const MINUTE_MS = 60_000;
/** From the end of all disturbances until everything must be at rest: longer than the longest pause between attempts. */
const PEACE_MS = 150 * MINUTE_MS;
/** For this long nothing must be open before the world counts as at rest: longer than the pauses of regular clean-up. */
const QUIET_MS = 16 * MINUTE_MS;
/** The same where a service may have asked for a pause. */
const LONG_QUIET_MS = 80 * MINUTE_MS;
/** The same if nothing is left for the clean-up. */
const SHORT_QUIET_MS = MINUTE_MS;
const LOOK_MS = 30_000;
/** A daemon takes an operator's decision up within a minute. */
const DECIDED_MS = 2 * MINUTE_MS;
/** A daemon that was started again has done what it does at its start. */
const RESTARTED_MS = 2 * MINUTE_MS;

/** The exit code of a check that gives no verdict. */
const UNDECIDED = 75;

const SECRET_HEADERS = /^x-cs-(password|clientid|verificationtoken)$/;

export interface WorldOptions {
  /** Notes what happens, for people. Takes half of the time of a world. */
  readonly isNoted?: boolean;
}

export class World implements Ground {
  readonly plan: Plan;
  readonly schedule = new Schedule(START_MS);
  readonly disk = new SimulatedDisk(() => this.schedule.nowMs + this.wallOffsetMs);
  readonly random: Random;
  readonly transfers: readonly StoredTransfer[];
  readonly services: readonly WorldService[];
  readonly network: Network;
  readonly store: SharedStore;
  readonly calm = new Calm(() => this.schedule.nowMs);
  readonly observer: Observer;
  readonly requests: Requests;
  readonly truth: Truth;
  readonly daemons = new Daemons(this);
  readonly people: People;
  readonly troubles = new Troubles(this);
  readonly locks: Ground["locks"] = new Map();
  readonly watches: Ground["watches"] = new Set();
  readonly watchMood: WatchMood;
  wallOffsetMs = 0;
  bootedMs = START_MS;
  areLocksBroken = false;
  /** How long a step of the disk takes at most; 0: as usual. */
  slowStepMs = 0;
  /** Only steps in this folder of ours are slow. */
  slowFolder: string | undefined;
  longestProgramMs = PROGRAM_MS;
  readonly exitCodes = { check: 0, command: 0 };
  /** The check spoils content of which it gives no verdict. */
  doesCheckSpoil = true;
  /** Of the daemon's messages. */
  readonly receiver = { isAway: false, delayMs: 0 };
  /** What happened, for people. */
  readonly log: string[] = [];
  /** How many steps a daemon had done when it first emitted each type of event. */
  readonly firsts = new Map<string, number>();
  /** Passwords that a person is about to supply, each with its tracking-id. */
  readonly supplying = new Set<string>();
  /** Records are gone or older: what is missing from them is no mistake of the daemon. */
  hasLost = false;
  /** A check has refused a transfer at some time. */
  hasRefused = false;
  readonly #isNoted: boolean;
  readonly #judge: Process;
  /** `undefined`: the program refuses the configuration. */
  readonly #settings = new Map<Site, Settings | undefined>();
  #site: Site;
  #hasNoEdits = true;
  #isPeace = false;
  #hasDecided = false;

  constructor(plan: Plan, { isNoted = false }: WorldOptions = {}) {
    this.plan = plan;
    this.#site = plan.site;
    this.#isNoted = isNoted;
    this.watchMood = plan.watches ?? "prompt";
    this.random = new Random(plan.seed ^ 0x5eed);
    // A run changes the states of its transfers. Some services list them before they have arrived.
    this.transfers = plan.transfers.map((transfer) => {
      const isListed = this.habitsOf(transfer.service).ignoresActive === true;
      return {
        ...transfer,
        state: isListed ? "processing" : "unsent",
        wrong: 0,
        opened: 0,
        lockedUntilMs: new Map(),
      };
    });
    this.observer = new Observer(this);
    this.requests = new Requests(this);
    this.truth = new Truth(this);
    this.services = ADDRESSES.map((_, number) => this.#makeService(number));
    this.network = this.#makeNetwork();
    // Each part forks the random numbers: their order is part of what a seed means.
    this.store = new SharedStore({ nowMs: () => this.schedule.nowMs, random: this.random.fork() });
    this.people = new People(this);
    this.#judge = new Process("the judge", this, new Random(plan.seed));
    this.#judge.isJudge = true;
    for (const folder of ["/data", STATE, OUTSIDE, "/taken", "/data/taken"]) {
      this.disk.prepare(folder, 0o755, 0);
    }
    this.disk.onLargeRead = (path, bytes) =>
      this.observer.violate(`I8: ${bytes} bytes that somebody else wrote are read at once: ${path}`);
    this.disk.onChange = (change) => {
      this.observer.changed(change);
      this.people.saw(change);
      this.daemons.saw(change);
    };
  }

  #makeService(number: number): WorldService {
    const service = new WorldService({
      number,
      url: ADDRESSES[number]?.[0] ?? "",
      transfers: this.transfers,
      habits: this.habitsOf(number),
      clientId: CLIENT_IDS[number] ?? "",
      random: this.random.fork(),
      nowMs: () => this.schedule.nowMs,
    });
    service.onRequest = (request) => {
      this.requests.arrived(request);
      this.troubles.reached(request.process, request.operation);
    };
    service.onAnswered = (request) => this.requests.answered(request);
    return service;
  }

  /** Each spelling of an address leads to its service. */
  #makeNetwork(): Network {
    const network = new Network(this.schedule);
    for (const [number, spellings] of ADDRESSES.entries()) {
      for (const spelling of spellings) {
        network.hosts.set(new URL(spelling).origin, this.services[number] as WorldService);
      }
    }
    network.onStray = (origin, { headers }) => {
      const secrets = Object.keys(headers).filter((name) => SECRET_HEADERS.test(name));
      if (secrets.length > 0) this.observer.violate(`I4: ${secrets.join()} was sent to ${origin}`);
    };
    return network;
  }

  // What it is

  get daemon(): Daemon | undefined {
    return this.daemons.main;
  }

  /** The configuration as people have saved it. Daemons apply it later. */
  get site(): Site {
    return this.#site;
  }

  get settings(): Settings {
    return this.#settings.get(this.#site) as Settings;
  }

  get work(): string {
    return workOf(this.#site);
  }

  /** Only what is still open happens: nothing new. */
  get isPeace(): boolean {
    return this.#isPeace;
  }

  /** The configuration was never changed. */
  get hasNoEdits(): boolean {
    return this.#hasNoEdits;
  }

  get isRefused(): boolean {
    return this.daemons.isRefused;
  }

  get appliedSites(): Site[] {
    return this.daemons.appliedSites;
  }

  get badFolderSinceMs(): number | undefined {
    return this.troubles.badFolderSinceMs;
  }

  /** As commands read it, beside the daemon. */
  get ledger() {
    return peekLedger({ work: this.work, inbox: this.#site.inbox });
  }

  readonly habitsOf = (service: number): ServiceHabits => this.plan.habits?.[service] ?? {};

  isTokenOf(service: number, address: string, token: string): boolean {
    return this.services[service]?.isTokenOf(address, token) === true;
  }

  /** Takes no time. */
  records(): Promise<TransferRecord[]> {
    return pump(
      this.schedule,
      this.#judge.run(() => this.recordsNow()),
    );
  }

  /** For the process that reads them. */
  recordsNow(): Promise<TransferRecord[]> {
    return Array.fromAsync(this.ledger.all(() => {}));
  }

  /** A function is called only if somebody reads the log. */
  note(text: string | (() => string)): void {
    if (!this.#isNoted) return;
    const ms = Math.round(this.schedule.nowMs - START_MS);
    this.log.push(`${(ms / 1000).toFixed(1).padStart(8)} s  ${typeof text === "string" ? text : text()}`);
  }

  // Its run

  /**
   * Runs until nothing is left to do. `isClean`: whether there is also nothing to clean up. Returns whether that is so, and
   * nothing has changed since.
   */
  async run(isClean: () => Promise<boolean> = async () => false): Promise<boolean> {
    await this.#chooseSite();
    this.observer.siteApplied(this.#site);
    this.daemons.start();
    for (const { atMs, what } of this.plan.happenings) {
      this.schedule.after(atMs, () => this.happen(what));
    }
    this.#lookEveryMinute();
    const { violations } = this.observer;
    await this.schedule.run(START_MS + (this.plan.unrestMs ?? UNREST_MS), () => violations.length > 0);
    if (violations.length > 0) return false;
    await this.#makePeace();
    const isAtRest = await this.#awaitRest(isClean);
    return !this.disk.dropCaches() && isAtRest;
  }

  /** Nothing happens in peace. */
  happen(what: Happening): void {
    if (this.#isPeace) return;
    this.note(() => describe(what));
    happen(this, what);
  }

  #lookEveryMinute(): void {
    this.schedule.after(MINUTE_MS, () => {
      this.truth.look();
      this.#lookEveryMinute();
    });
  }

  async #makePeace(): Promise<void> {
    this.note("peace");
    this.calm.end();
    this.#isPeace = true;
    endAll(this);
    await this.daemons.makePeace();
  }

  /** Ends early if a person has to decide, or if something is already wrong. Returns whether it has come to rest. */
  async #awaitRest(isClean: () => Promise<boolean>): Promise<boolean> {
    const endMs = this.schedule.nowMs + PEACE_MS;
    const hasRests = this.services.some((_, service) => this.calm.hadWeather(service, ["limiting"], 0));
    const rest = new Rest(
      this,
      hasRests ? LONG_QUIET_MS : QUIET_MS,
      this.plan.isSmall ? LOOK_MS : SHORT_QUIET_MS,
    );
    while (this.schedule.nowMs < endMs && !rest.isLong) {
      await this.schedule.run(this.schedule.nowMs + LOOK_MS);
      if (await this.#decide(rest.isQuiet)) rest.disturb();
      if (this.isRefused || this.observer.violations.length > 0) return false;
      rest.look(LOOK_MS);
      if (rest.mayBeOver && (await isClean())) return true;
    }
    return false;
  }

  /** An operator decides once about records that are gone. In some worlds, what is in doubt stays so. */
  async #decide(isAtRest: boolean): Promise<boolean> {
    const decision = this.hasLost ? DECISIONS[this.plan.seed % 3] : undefined;
    if (decision === undefined || this.#hasDecided || !(this.isRefused || isAtRest)) return false;
    this.#hasDecided = true;
    this.people.decide(decision);
    await this.schedule.run(this.schedule.nowMs + DECIDED_MS);
    return true;
  }

  /** The content of an order's file. */
  orderIn(name: string): {
    readonly action?: string;
    readonly trackingId?: string;
    readonly mailbox?: string;
  } {
    return parseTorn(this.disk.text(`${this.work}/orders/${name}`));
  }

  /** A regular restart changes nothing. */
  async restart(): Promise<void> {
    await this.daemons.stopAll();
    this.daemons.start();
    await this.schedule.run(this.schedule.nowMs + RESTARTED_MS);
  }

  /** `inlet once`, until it ends. */
  async runOnce(): Promise<void> {
    await this.daemons.stopAll();
    await this.daemons.runOnce();
  }

  async close(): Promise<void> {
    await this.daemons.stopAll();
  }

  // Its configurations

  /** In place of one that the program refuses, takes a simpler one: the world begins with a daemon. */
  async #chooseSite(): Promise<void> {
    await this.#loadSites();
    for (const simpler of [withoutRules(this.#site), PLAIN]) {
      if (this.#settings.get(this.#site) !== undefined) return;
      this.#site = simpler;
      await this.#loadSites();
    }
  }

  /** Happenings cannot wait for them. */
  async #loadSites(): Promise<void> {
    const sites = [this.#site, ...this.plan.happenings.map(({ what }) => siteOf(what))];
    for (const site of sites) {
      if (site === undefined || this.#settings.has(site)) continue;
      this.#settings.set(site, await loadSite(site));
    }
  }

  /** Somebody saves another configuration. */
  changeSite(site: Site): void {
    const settings = this.#settings.get(site);
    if (settings === undefined) {
      this.note("the new configuration is refused");
      return;
    }
    this.#hasNoEdits = false;
    this.calm.disturb(0);
    // The inbox changes only with a restart, and its folders with it.
    const { inbox } = this.#site;
    const isLater = this.daemons.running !== undefined && site.inbox !== inbox;
    this.#site = isLater ? { ...site, inbox } : site;
    if (isLater) this.#settings.set(this.#site, settings);
    this.observer.siteApplied(this.#site);
    for (const daemon of this.daemons.all) void this.daemons.apply(daemon);
  }

  // Ground

  disturb(process: Process, step: Step): number {
    if (this.#isPeace || process === this.people.operator) return 0;
    return this.troubles.meet(process, step);
  }

  async runProgram(process: Process, { argv, env }: ProgramStart): Promise<Partial<ProgramEnd>> {
    const isCheck = env["INLET_EVENT"] === "check";
    const exitCode = this.exitCodes[isCheck ? "check" : "command"];
    this.note(`${process.name} runs ${argv[0]} for ${env["INLET_TRACKING_ID"]}: exit code ${exitCode}`);
    this.troubles.reached(process, isCheck ? "check" : "command");
    if (isCheck) this.#check(exitCode, env["INLET_FOLDER"] ?? "", env["INLET_TRACKING_ID"] ?? "");
    else this.observer.programRan(process, argv, env, exitCode === 0);
    return exitCode === 0 ? {} : { exitCode, why: `it ended with exit code ${exitCode}` };
  }

  /** A check that gives no verdict may have spoilt what it looked at, or left it alone. */
  #check(exitCode: number, folder: string, trackingId: string): void {
    const isSpoilt = exitCode === UNDECIDED && this.doesCheckSpoil;
    if (exitCode === 1 || isSpoilt) this.hasRefused = true;
    if (isSpoilt) this.people.spoil(folder, trackingId);
  }

  async post(process: Process, url: URL, body: string): Promise<{ status: number; retryAfter: undefined }> {
    const { isAway, delayMs } = this.receiver;
    const isNotice = url.pathname === "/notify";
    this.troubles.reached(process, isNotice ? "message" : "webhook");
    if (delayMs > 0) await new Promise<void>((resolve) => void this.schedule.after(delayMs, resolve));
    // Of what a dead process was sending, the receiver may have got only a part.
    if (process.isDead && this.random.chance(0.5)) return { status: 503, retryAfter: undefined };
    if (!isNotice) this.observer.called(process, JSON.parse(body), !isAway);
    else if (!isAway) this.observer.notified(JSON.parse(body));
    return { status: isAway ? 503 : 200, retryAfter: undefined };
  }
}

/** The configuration that this leads to, also if it does so later. */
function siteOf(what: Happening): Site | undefined {
  if (what.kind === "when") return siteOf(what.what);
  if (what.kind === "site") return what.site;
  return "inSite" in what ? what.inSite : undefined;
}

function withoutRules(site: Site): Site {
  const boxes = site.boxes.map(({ handoff: _, ...box }) => ({ ...box, routes: [] }));
  return { ...site, boxes, handoff: {} };
}

const loaded = new Map<string, Promise<Settings | undefined>>();
const MAX_LOADED = 100;

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
  const ground = {
    schedule,
    disk,
    random: new Random(1),
    disturb: () => 0,
    wallOffsetMs: 0,
    bootedMs: START_MS,
  } as unknown as Ground;
  const process = new Process("loader", ground);
  const settings = process
    // Commands are called in this process, and its sockets would be real ones.
    .run(async () => ({
      ...(await loadSettings({ path: "/etc/inlet/inlet.yaml", env: {}, uid: 0 })),
      sockets: [],
    }))
    .catch(() => undefined);
  const loading = pump(schedule, settings);
  loaded.set(text, loading);
  return loading;
}

/** Lets time pass until the work is done. */
export async function pump<Result>(schedule: Schedule, work: Promise<Result>): Promise<Result> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  void work.then(end, end);
  while (!isOver) await schedule.run(schedule.nowMs + MINUTE_MS, () => isOver);
  return work;
}
