/**
 * Watches the folders that a running daemon needs. If one is lost, nothing is changed on any disk from then on, and `signal`
 * aborts, so that the daemon closes its parts. One trouble stands for everything that fails for this cause.
 */
import { Coalesced } from "../base/concurrency.ts";
import { whenAborted } from "../base/deadline.ts";
import { asFault, type Fault, isOfDisk, systemCode } from "../base/faults.ts";
import { watchFolder } from "../base/files.ts";
import { closeDisks } from "../base/machine.ts";
import type { Outage } from "../base/outage.ts";
import { clearInterval, monotonicMs, pause, setInterval, timeLimit } from "../base/timers.ts";
import { inboxesOf } from "../config/settings.ts";
import { demandInbox, demandSame, demandWritable, type KnownFolders } from "../inbox/work-folder.ts";
import type { DaemonEvent, Emit } from "../model/events.ts";
import type { LiveSettings } from "./live-settings.ts";

const LOOK_EVERY_MS = 20_000;
/** A job may begin if the folders were there this long ago. */
const RECENT_MS = 2_000;
/** Events wait this long for a look. */
const MAX_HELD_MS = 10_000;
/** A disk may refuse one call and accept the next. */
const LOOK_AGAIN_MS = 1_000;

export class FolderWatch {
  readonly #known: KnownFolders;
  readonly #live: LiveSettings;
  readonly #trouble: Outage;
  readonly #lost = new AbortController();
  readonly #looks = new Coalesced(() => this.#look());
  #lookedMs = Number.NEGATIVE_INFINITY;
  #lostInboxes: readonly string[] = [];

  /** `trouble`: has the path of each lost folder as a key. */
  constructor(known: KnownFolders, live: LiveSettings, trouble: Outage) {
    this.#known = known;
    this.#live = live;
    this.#trouble = trouble;
  }

  /** Aborts with the fault when a folder is lost that everything needs. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Looks until the scope ends. */
  start(scope: AsyncDisposableStack, everyMs = LOOK_EVERY_MS): void {
    const timer = setInterval(() => void (this.#looks.isIdle && this.#looks.run()), everyMs);
    scope.adopt(timer, clearInterval);
  }

  /** Looks now, unless it has just looked. Throws the fault if a folder is lost that everything needs. */
  async demand(): Promise<void> {
    if (monotonicMs() - this.#lookedMs > RECENT_MS) await this.#looks.run();
    this.signal.throwIfAborted();
  }

  /**
   * An event that the disk may have caused waits for a look, as do the events after it. It is dropped if a folder is lost:
   * the trouble of the folder stands for it.
   */
  filter(emit: Emit): Emit {
    const held: DaemonEvent[] = [];
    const emitHeld = () => {
      for (const event of held.splice(0)) if (!this.#standsFor(event)) emit(event);
    };
    return (event) => {
      if (held.length === 0 && !mayBeOfDisk(event)) return emit(event);
      held.push(event);
      // The look for the first one decides on all.
      if (held.length === 1) void this.#lookInTime().then(emitHeld);
    };
  }

  /** Looks, but does not wait long: a disk that does not answer must not keep events back. */
  async #lookInTime(): Promise<void> {
    const { signal, clear } = timeLimit(MAX_HELD_MS);
    await Promise.race([this.#looks.run(), whenAborted(signal)]);
    clear();
  }

  /** Never throws. */
  async #look(): Promise<void> {
    if (this.signal.aborted) return;
    const fault = await this.#findLoss();
    const { work } = this.#known;
    if (fault === undefined) this.#trouble.clear(work);
    else this.#trouble.add(work, fault);
    // A full disk is not lost, and smaller transfers may still fit.
    if (fault !== undefined && fault.code !== "DISK_FULL") {
      closeDisks(fault);
      return this.#lost.abort(fault);
    }
    await this.#lookAtInboxes();
    this.#lookedMs = monotonicMs();
  }

  async #findLoss(): Promise<Fault | undefined> {
    const hasTrouble = () => this.#trouble.keys().length > 0;
    const find = () =>
      demandSame(this.#known)
        .then(() => demandWritable(this.#known, hasTrouble()))
        .then(() => undefined, asFault);
    const fault = await find();
    if (fault === undefined || !["DISK_REFUSED", "DISK_UNREADABLE"].includes(fault.code)) return fault;
    await pause(LOOK_AGAIN_MS);
    return find();
  }

  /** The inboxes of mailboxes and routes: without one, only deliveries to it wait. */
  async #lookAtInboxes(): Promise<void> {
    const before = this.#lostInboxes;
    const lost: string[] = [];
    for (const { path } of inboxesOf(this.#live.now).slice(1)) {
      const fault = await demandInbox(this.#known, path).then(() => undefined, asFault);
      if (fault === undefined) continue;
      lost.push(path);
      this.#trouble.add(path, fault);
    }
    this.#lostInboxes = lost;
    for (const path of before) if (!lost.includes(path)) this.#trouble.clear(path);
  }

  /** Whether the trouble of a lost folder explains the event. */
  #standsFor(event: DaemonEvent): boolean {
    if (!mayBeOfDisk(event)) return false;
    if (this.signal.aborted) return true;
    // The status must show the transfer as waiting.
    if (event.type === "transfer-changed" || !("record" in event)) return false;
    return event.record.inbox !== undefined && this.#lostInboxes.includes(event.record.inbox);
  }
}

function mayBeOfDisk(event: DaemonEvent): boolean {
  // A command of a hand-off fails if the folder that it works on is gone.
  if (event.type === "record-damaged" || event.type === "handoff-failed") return true;
  const fault = "fault" in event ? event.fault : undefined;
  return fault !== undefined && isOfDisk(fault) && fault.code !== "DISK_FULL";
}

export const REPEAT_MS = 30_000;

/** Looks at each change in a folder and regularly, until the scope ends. The folder is not made: its disk may be gone. */
export async function lookAtChanges(
  folder: string,
  look: () => void,
  emit: Emit,
  scope: AsyncDisposableStack,
  isNews: (path: string, event: string) => boolean = () => true,
): Promise<void> {
  const watcher = await watchFolder(
    folder,
    { ignoreInitial: false },
    {
      changed: (...change) => void (isNews(...change) && look()),
      unwatchable: (fault) => emit({ type: "folder-unwatchable", fault }),
    },
  );
  scope.adopt(watcher, (it) => it.close());
  scope.adopt(setInterval(look, REPEAT_MS), clearInterval);
}

/** Whether a failed start is repeated. `wasOpen`: an earlier start has succeeded, so the disk's refusal is no wrong setting. */
export function mayRecover(fault: Fault, wasOpen: boolean): boolean {
  // It waits for the disk, for an operator's answer, or for the end of another process.
  if (["WORK_LOST", "WORK_RESTORED", "MEMBER_OLDER"].includes(fault.code)) return true;
  if (!isOfDisk(fault)) return false;
  return wasOpen || ["DISK_FULL", "DISK_READ_ONLY"].includes(fault.code) || systemCode(fault.cause) === "EIO";
}
