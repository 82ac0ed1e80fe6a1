/** What meets a daemon at a step of its disk: the step fails, or something that waits for it happens. */
import { failure } from "./ground/disk.ts";
import type { Process, Step } from "./ground/process.ts";
import type { Happening, Moment } from "./plan/plan.ts";
import type { World } from "./world.ts";

const MINUTE_MS = 60_000;
/** Folders that a daemon without work looks at twice a minute. */
const LOOKED_AT: ReadonlySet<string> = new Set(["outbox", "orders", "new"]);

interface Trouble {
  type: Step["type"] | "any";
  readonly process: Process;
  readonly fromStep: number;
  /** It begins with a step in this folder of ours, after so many others in it. */
  readonly inFolder: string | undefined;
  skips: number;
  left: number;
}

interface Trigger {
  readonly process: Process;
  readonly inFolder: string | undefined;
  readonly moment: Moment | undefined;
  readonly pauseMs: number;
  readonly stallMs: number;
  readonly what: Happening;
  left: number;
}

export class Troubles {
  readonly #world: World;
  readonly #troubles: Trouble[] = [];
  readonly #triggers: Trigger[] = [];
  #badFolder: string | undefined;
  #badFolderSinceMs: number | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  /** Since when a folder that is looked at regularly cannot be read. */
  get badFolderSinceMs(): number | undefined {
    return this.#badFolderSinceMs;
  }

  /** Some of the next steps of this process fail. */
  fail(process: Process, what: Happening & { kind: "sync-fails" | "disk-fails" }): void {
    const { kind, inFolder, afterSteps, times } = what;
    this.#troubles.push({
      type: kind === "sync-fails" ? "sync" : "any",
      process,
      fromStep: process.steps + (inFolder === undefined ? afterSteps : 0),
      inFolder,
      // Not of the digits that have chosen the folder.
      skips: Math.floor(afterSteps / 24) % 4,
      left: times,
    });
  }

  /** Something happens at one of the next steps of this process. */
  trigger(
    process: Process,
    { inFolder, moment, pauseMs, stallMs = 0, what, afterSteps }: Happening & { kind: "when" },
  ): void {
    this.#triggers.push({ process, inFolder, moment, pauseMs, stallMs, what, left: afterSteps });
  }

  /** The process begins something that others see. */
  reached(process: Process, moment: Moment): void {
    const waits = (each: Trigger) => each.process === process && each.moment === moment;
    const trigger = this.#triggers.find((each) => waits(each) && each.left-- <= 0);
    if (trigger !== undefined) this.#pull(process, trigger, moment);
  }

  spoilFolder(inFolder: string): void {
    this.#badFolder = inFolder;
    // It takes the place of another one, which can be read again.
    this.#badFolderSinceMs = LOOKED_AT.has(inFolder) ? this.#world.schedule.nowMs : undefined;
  }

  mendFolder(): void {
    this.#badFolder = undefined;
    this.#badFolderSinceMs = undefined;
  }

  /** Nothing meets anybody any longer. */
  end(): void {
    this.#troubles.length = 0;
    this.#triggers.length = 0;
    this.mendFolder();
  }

  /** Throws the system's error if this step fails. Returns for how long it alone waits. */
  meet(process: Process, step: Step): number {
    const trigger = this.#triggers.find((each) => isPulled(each, process, step));
    if (trigger !== undefined) this.#pull(process, trigger, step.path);
    const { type, path, entry } = step;
    if (this.#badFolder !== undefined && path.includes(`/.inlet/${this.#badFolder}`)) {
      throw failure("EIO", path);
    }
    const trouble = this.#troubles.find((each) => strikes(each, process, step));
    if (trouble === undefined) return trigger?.stallMs ?? 0;
    trouble.left--;
    // A disk that fails to sync may also fail to say what it has.
    if (trouble.inFolder !== undefined && trouble.left === 1) trouble.type = "any";
    if (type === "sync" && entry?.kind === "file") entry.failSync();
    this.#world.note(`the disk fails: ${type} ${path}`);
    this.#world.calm.disturb(MINUTE_MS);
    throw failure("EIO", path);
  }

  /** What waits for this happens now. */
  #pull(process: Process, trigger: Trigger, where: string): void {
    const { schedule } = this.#world;
    this.#triggers.splice(this.#triggers.indexOf(trigger), 1);
    this.#world.note(() => `at ${where}:`);
    if (trigger.stallMs > 0) this.#world.calm.disturb(trigger.stallMs + MINUTE_MS);
    this.#world.happen(trigger.what);
    if (trigger.pauseMs > 0 && process.frozenUntilMs <= schedule.nowMs) {
      process.frozenUntilMs = schedule.nowMs + trigger.pauseMs;
    }
  }
}

/** Whether it happens at this step. Counts the steps before it. */
function isPulled(trigger: Trigger, process: Process, { type, path }: Step): boolean {
  const { inFolder, moment, stallMs } = trigger;
  if (moment !== undefined || (stallMs > 0 && type === "read")) return false;
  const isMet = trigger.process === process && (inFolder === undefined || path.includes(`/${inFolder}`));
  return isMet && trigger.left-- <= 0;
}

/** Whether a trouble of the disk meets this step. Counts the steps before it. */
function strikes(trouble: Trouble, process: Process, { type, path }: Step): boolean {
  const isMet = trouble.process === process && process.steps >= trouble.fromStep && trouble.left > 0;
  if (!isMet || (trouble.type !== "any" && trouble.type !== type)) return false;
  const { inFolder } = trouble;
  if (trouble.skips < 0 || inFolder === undefined) return true;
  return path.includes(`/${inFolder}`) && trouble.skips-- <= 0;
}
