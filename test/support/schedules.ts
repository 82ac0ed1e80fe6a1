/**
 * Explores the schedules of a few workers on one disk: each call on the disk is a step, and before each step another worker
 * may continue, a process may crash, or the power may be cut.
 *
 * Each schedule is a run from the start, and the same schedule gives the same run. A *preemption* is a switch away from a
 * worker that could continue; other switches are free. A run stops at a state that an earlier run has reached with as many
 * preemptions left: both would continue alike.
 */
import type { Disk, DiskFile } from "../../src/base/disk.ts";
import { systemCode } from "../../src/base/faults.ts";
import { type Change, type ModelDisk, notModelled } from "./model-disk.ts";
import { outsider, type RandomSource, worker } from "./predictable-bytes.ts";

/** Takes one step when the schedule says so. */
export type Gate = <Value>(label: string, step: () => Promise<Value>) => Promise<Value>;

interface Worker {
  readonly name: string;
  /** Workers of one process crash together. */
  readonly process: number;
  run(): Promise<void>;
}

/** One run of a scenario, from its start. Checks return the first problem. */
interface Run {
  readonly disk: ModelDisk;
  readonly workers: readonly Worker[];
  /** The state of everything besides the disk and the processes. */
  outside(): string;
  /** Called after each step that no earlier run has checked. */
  check(): string | undefined;
  /** Called when every worker has ended without a crash. */
  checkEnd(): string | undefined;
  /** Called after all processes have stopped and left this disk: a new process finishes everything, and checks it. */
  restart(left: ModelDisk): Promise<string | undefined>;
}

export interface Scenario {
  readonly name: string;
  start(gate: Gate): Promise<Run>;
}

export interface Limits {
  /** In one schedule. */
  readonly preemptions: number;
  readonly crashes: number;
}

export interface Violation {
  readonly problem: string;
  /** All steps that led to it, in order. */
  readonly steps: readonly string[];
}

export interface Explored {
  readonly schedules: number;
  /** Distinct states before a step. */
  readonly states: number;
  /** Distinct disks after crashes and power cuts, each with a restart. */
  readonly restarts: number;
  readonly violation: Violation | undefined;
}

const PREEMPTIONS: Readonly<Record<string, number>> = { long: 3, all: Number.POSITIVE_INFINITY };

/** `INLET_EXPLORE=long` allows one preemption more, `INLET_EXPLORE=all` any number. */
export const LIMITS: Limits = {
  preemptions: PREEMPTIONS[process.env["INLET_EXPLORE"] ?? ""] ?? 2,
  crashes: 1,
};

/** Stops at the first violation. Schedules with fewer preemptions and crashes come first. */
export async function explore(scenario: Scenario, limits: Limits = LIMITS): Promise<Explored> {
  const { stackTraceLimit } = Error;
  // Most errors are about missing files, and a stack trace takes longer than a step.
  Error.stackTraceLimit = 0;
  const startedMs = performance.now();
  try {
    const explored = await new Exploration(scenario, limits).walk();
    const { schedules, states, restarts } = explored;
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    process.stdout.write(
      `${scenario.name}: ${schedules} schedules, ${states} states, ${restarts} restarts, ${seconds} s\n`,
    );
    return explored;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** For the message of a failed test. */
export function formatViolation(violation: Violation | undefined): string | undefined {
  const text = violation && [violation.problem, ...violation.steps].join("\n  ");
  // Shorten digests and tokens.
  return text?.replaceAll(/\.[0-9a-f]{32}/g, "").replaceAll(/([0-9a-f])\1{7,}/g, "$1");
}

/** A worker in a run. */
interface Thread extends RandomSource {
  readonly name: string;
  readonly process: number;
  /** Waiting steps. */
  readonly calls: Call[];
}

interface Call {
  readonly label: string;
  go(): void;
}

interface Choice {
  readonly thread: number;
  readonly isCrash: boolean;
}

/** A linked list of choices, the last one first, so that schedules share their beginnings. */
interface Path {
  readonly before: Path | undefined;
  readonly choice: Choice;
}

/** All choices but the last come from an earlier run. */
interface Beginning {
  readonly path: Path | undefined;
  /** Of the processes, before the last choice. */
  readonly pasts: readonly number[];
  /** The state after the last choice, if it is known without a run: a crash changes nothing else. */
  readonly state?: ReachedState;
}

interface ReachedState {
  readonly key: string;
  /** Preemptions left. */
  readonly left: number;
}

/** Far more steps than a run takes. */
const MAX_STEPS = 2000;

class Exploration {
  readonly #scenario: Scenario;
  readonly #limits: Limits;
  /** Beginnings of schedules that are still to be run, by their number of preemptions and crashes. */
  readonly #beginnings: Beginning[][] = [[{ path: undefined, pasts: [] }]];
  /** Reached states, with the number of preemptions left. */
  readonly #reached = new Map<string, number>();
  readonly #cut = new Set<string>();
  readonly #restarted = new Set<string>();
  /** The state of a process follows from the answers it got: each sequence of answers has a number. */
  readonly #pasts = new Map<string, number>();
  #schedules = 0;

  constructor(scenario: Scenario, limits: Limits) {
    this.#scenario = scenario;
    this.#limits = limits;
  }

  async walk(): Promise<Explored> {
    let violation: Violation | undefined;
    for (let next = this.#next(); next !== undefined && violation === undefined; next = this.#next()) {
      if (next.state !== undefined && this.#isReached(next.state)) continue;
      this.#schedules++;
      violation = await this.#walkOne(next);
    }
    const [schedules, states, restarts] = [this.#schedules, this.#reached.size, this.#restarted.size];
    return { schedules, states, restarts, violation };
  }

  #next(): Beginning | undefined {
    return this.#beginnings.find((list) => list.length > 0)?.pop();
  }

  async #walkOne({ path, pasts }: Beginning): Promise<Violation | undefined> {
    outsider.randoms = 0;
    const execution = new Execution(this.#pasts);
    const run = await this.#scenario.start(execution.gate);
    await execution.start(run.workers);
    if (path?.before !== undefined) await replay(execution, choicesOf(path.before), pasts);
    const { steps } = execution;
    let walked = path?.before;
    let known = path?.choice;
    while (true) {
      const problem = execution.findProblem() ?? run.check();
      if (problem !== undefined) return { problem, steps };
      if (execution.next() === -1) break;
      if (known === undefined) {
        const state = this.#stateOf(execution, run);
        if (this.#isReached(state)) return undefined;
        this.#reached.set(state.key, state.left);
        const violation = await this.#cutPower(run);
        if (violation !== undefined) return { ...violation, steps: [...steps, ...violation.steps] };
        this.#fork(execution, run, walked);
      }
      walked = { before: walked, choice: known ?? { thread: execution.next(), isCrash: false } };
      known = undefined;
      await execution.take(walked.choice);
    }
    const problem = execution.hasCrashed() ? undefined : run.checkEnd();
    if (problem !== undefined) return { problem, steps };
    return this.#restart(run, run.disk.copy(), steps);
  }

  #isReached({ key, left }: ReachedState): boolean {
    return (this.#reached.get(key) ?? -1) >= left;
  }

  /** `crashing`: a worker whose process crashes now. */
  #stateOf(execution: Execution, run: Run, crashing?: number): ReachedState {
    return {
      key: `${run.disk.digest()} ${execution.state(crashing)} ${run.outside()}`,
      left: this.#limits.preemptions - execution.preemptions,
    };
  }

  /** Adds the other schedules that begin like this run. */
  #fork(execution: Execution, run: Run, walked: Path | undefined): void {
    const { current, preemptions, crashes } = execution;
    const pasts = execution.pasts();
    const canContinue = execution.isReady(current);
    const add = (choice: Choice, cost: number, state?: ReachedState) => {
      const index = preemptions + crashes + cost;
      this.#beginnings[index] ??= [];
      this.#beginnings[index].push({ path: { before: walked, choice }, pasts, ...(state && { state }) });
    };
    // A crash while another process runs equals a crash right after the process's own last step. A crash that leaves no
    // other process equals a power cut that loses nothing.
    if (canContinue && crashes < this.#limits.crashes && execution.hasOthers(current)) {
      add({ thread: current, isCrash: true }, 1, this.#stateOf(execution, run, current));
    }
    if (canContinue && preemptions >= this.#limits.preemptions) return;
    for (const thread of execution.ready()) {
      if (thread !== execution.next()) add({ thread, isCrash: false }, canContinue ? 1 : 0);
    }
  }

  async #cutPower(run: Run): Promise<Violation | undefined> {
    const state = `${run.disk.digest()} ${run.outside()}`;
    if (this.#cut.has(state)) return undefined;
    this.#cut.add(state);
    for (const survivors of selectSurvivors(run.disk.unsynced())) {
      const steps = [formatPowerCut(survivors)];
      const violation = await this.#restart(run, run.disk.powerCut(survivors), steps);
      if (violation !== undefined) return violation;
    }
    return undefined;
  }

  async #restart(run: Run, left: ModelDisk, steps: readonly string[]): Promise<Violation | undefined> {
    const state = `${left.digest()} ${run.outside()}`;
    if (this.#restarted.has(state)) return undefined;
    this.#restarted.add(state);
    outsider.randoms = 0x100;
    const problem = await run.restart(left);
    return problem === undefined ? undefined : { problem: `after a restart: ${problem}`, steps };
  }
}

function choicesOf(path: Path): Choice[] {
  const choices: Choice[] = [];
  for (let at: Path | undefined = path; at !== undefined; at = at.before) choices.push(at.choice);
  return choices.reverse();
}

async function replay(
  execution: Execution,
  choices: readonly Choice[],
  pasts: readonly number[],
): Promise<void> {
  execution.isReplaying = true;
  for (const choice of choices) await execution.take(choice);
  execution.continueFrom(pasts);
}

/** The workers of one run and their progress. */
class Execution {
  readonly steps: string[] = [];
  preemptions = 0;
  crashes = 0;
  /** The worker that took the last step; -1 without one, or after a crash. */
  current = -1;
  #failure: string | undefined;
  readonly #threads: Thread[] = [];
  readonly #ended = new Set<Thread>();
  readonly #crashed = new Set<number>();
  readonly #knownPasts: Map<string, number>;
  /** By process. */
  #pasts: number[] = [];
  /** Pasts are known from an earlier run. */
  isReplaying = false;

  constructor(knownPasts: Map<string, number>) {
    this.#knownPasts = knownPasts;
  }

  readonly gate: Gate = async (label, step) => {
    const thread = worker.getStore() as Thread | undefined;
    if (thread === undefined) return step();
    await new Promise<void>((go) => thread.calls.push({ label, go }));
    try {
      const value = await step();
      this.#note(thread, label, formatAnswer(value));
      return value;
    } catch (error) {
      this.#note(thread, label, systemCode(error));
      throw error;
    }
  };

  /** Runs each worker until its first step. */
  async start(workers: readonly Worker[]): Promise<void> {
    for (const [index, { name, process, run }] of workers.entries()) {
      const thread: Thread = { name, letter: "abcdef"[index] ?? "f", process, calls: [], randoms: 0 };
      this.#threads.push(thread);
      this.#pasts[process] = 0;
      worker.run(thread, run).then(
        () => this.#ended.add(thread),
        (error: unknown) => {
          this.#failure ??= `${name} failed: ${error}`;
        },
      );
    }
    await microtasksDone();
  }

  ready(): number[] {
    return [...this.#threads.keys()].filter((index) => this.isReady(index));
  }

  isReady(index: number): boolean {
    const thread = this.#threads[index];
    return thread !== undefined && thread.calls.length > 0 && !this.#crashed.has(thread.process);
  }

  /** The worker that continues by default; -1 if none can. */
  next(): number {
    return this.isReady(this.current) ? this.current : (this.ready()[0] ?? -1);
  }

  /** A worker has failed, waits for ever, or does not end. */
  findProblem(): string | undefined {
    if (this.#failure !== undefined) return this.#failure;
    if (this.steps.length > MAX_STEPS) return "does not end";
    if (this.next() !== -1) return undefined;
    const left = this.#threads.find((it) => !this.#ended.has(it) && !this.#crashed.has(it.process));
    return left && `${left.name} waits for ever`;
  }

  hasCrashed(): boolean {
    return this.#crashed.size > 0;
  }

  async take({ thread: index, isCrash }: Choice): Promise<void> {
    const thread = this.#threads[index];
    if (thread === undefined) return;
    if (isCrash) {
      this.steps.push(`${thread.name}: crash`);
      this.#crashed.add(thread.process);
      this.crashes++;
      this.current = -1;
      return;
    }
    if (this.current !== index && this.isReady(this.current)) this.preemptions++;
    this.current = index;
    const call = thread.calls.shift();
    this.steps.push(`${thread.name}: ${call?.label}`);
    call?.go();
    await microtasksDone();
  }

  pasts(): readonly number[] {
    return [...this.#pasts];
  }

  continueFrom(pasts: readonly number[]): void {
    this.#pasts = [...pasts];
    this.isReplaying = false;
  }

  /** `crashing`: a worker whose process crashes now. */
  state(crashing?: number): string {
    const process = crashing === undefined ? undefined : this.#threads[crashing]?.process;
    const isCrashed = (it: number) => it === process || this.#crashed.has(it);
    const pasts = this.#pasts.map((past, it) => (isCrashed(it) ? "crashed" : past));
    return `${crashing === undefined ? this.current : -1} ${pasts}`;
  }

  /** Workers of other processes have not ended. */
  hasOthers(index: number): boolean {
    const process = this.#threads[index]?.process;
    return this.#threads.some(
      (it) => it.process !== process && !this.#ended.has(it) && !this.#crashed.has(it.process),
    );
  }

  #note({ process, letter }: Thread, label: string, answer: string): void {
    if (answer !== "" && answer.length < 80) this.steps[this.steps.length - 1] += ` → ${answer}`;
    if (this.isReplaying) return;
    const past = `${this.#pasts[process]} ${letter} ${label} ${answer}`;
    const number = this.#knownPasts.get(past) ?? this.#knownPasts.size + 1;
    this.#knownPasts.set(past, number);
    this.#pasts[process] = number;
  }
}

function formatAnswer(value: unknown): string {
  if (Array.isArray(value)) return value.join(", ");
  return value === undefined || typeof value === "object" ? "" : String(value);
}

/** Resolves when each worker has reached its next step, or waits for another worker. */
function microtasksDone(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** A power cut leaves no unsynced changes, all, one alone, or all but one. */
function selectSurvivors(changes: readonly Change[]): ReadonlySet<Change>[] {
  const alone = changes.map((change) => new Set([change]));
  const others = changes.map((change) => new Set(changes.filter((it) => it !== change)));
  return [new Set(), new Set(changes), ...alone, ...others];
}

function formatPowerCut(survivors: ReadonlySet<Change>): string {
  const names = [...survivors].map((it) =>
    "origin" in it ? `text of ${it.origin}` : `${it.file === undefined ? "no " : ""}${it.path}`,
  );
  return `power cut, unsynced changes that survive: ${names.join(", ") || "none"}`;
}

/** The disk as one process sees it: each call is a step. */
export class GatedDisk implements Disk {
  readonly #disk: ModelDisk;
  readonly #gate: Gate;
  /** Numbers of the changes made by this process. */
  readonly #changes: number[] = [];

  constructor(disk: ModelDisk, gate: Gate) {
    this.#disk = disk;
    this.#gate = gate;
  }

  async create(path: string, mode: number): Promise<DiskFile> {
    return this.#gateFile(path, await this.#change(`create ${path}`, () => this.#disk.create(path, mode)));
  }

  async truncate(path: string): Promise<DiskFile> {
    return this.#gateFile(path, await this.#gate(`truncate ${path}`, () => this.#disk.truncate(path)));
  }

  read = (path: string) => this.#gate(`read ${path}`, () => this.#disk.read(path));
  list = (path: string) => this.#gate(`list ${path}`, () => this.#disk.list(path));
  kindOf = (path: string) => this.#gate(`kind of ${path}`, () => this.#disk.kindOf(path));
  link = (from: string, to: string) => this.#change(`link ${from} ${to}`, () => this.#disk.link(from, to));
  rename = (from: string, to: string) =>
    this.#change(`rename ${from} ${to}`, () => this.#disk.rename(from, to));
  unlink = (path: string) => this.#change(`unlink ${path}`, () => this.#disk.unlink(path));
  modifiedMs = notModelled;
  makeFolder = notModelled;
  setGroup = notModelled;
  removeFolder = notModelled;
  removeTree = notModelled;
  openFolder = notModelled;

  /** Does not cover changes that this process makes during the sync. */
  syncFolder(path: string): Promise<void> {
    const before = this.#changes.length;
    return this.#gate(`sync folder ${path}`, () =>
      this.#disk.syncFolder(path, new Set(this.#changes.slice(before))),
    );
  }

  #gateFile(path: string, file: DiskFile): DiskFile {
    return {
      write: (text) => this.#gate(`write ${path}`, () => file.write(text)),
      sync: () => this.#gate(`sync ${path}`, () => file.sync()),
      // Invisible to other workers, so not a step.
      close: () => file.close(),
    };
  }

  #change<Value>(label: string, step: () => Promise<Value>): Promise<Value> {
    return this.#gate(label, () => {
      const before = this.#disk.lastNumber;
      const done = step();
      if (this.#disk.lastNumber > before) this.#changes.push(this.#disk.lastNumber);
      return done;
    });
  }
}
