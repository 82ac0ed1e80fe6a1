/**
 * Notifications: each configured channel sends mails or calls a webhook. Changes of notices go through the journal. Of
 * several processes on one work folder, the one that holds a lock sends for all.
 */
import { hash } from "node:crypto";
import { dirname, join } from "node:path";
import { Coalesced } from "../base/concurrency.ts";
import { exists, makeFolderDurably } from "../base/durable.ts";
import { type KernelLock, tryLock } from "../base/kernel-lock.ts";
import { clearInterval, setInterval, type Timer } from "../base/timers.ts";
import type { Emit, ShownMailbox } from "../model/events.ts";
import type { ChannelSettings, MailChannel, WebhookChannel } from "../model/notify.ts";
import { type Promised, WITHIN_MS } from "../model/promise.ts";
import type { TransferRecord } from "../model/record.ts";
import { canonicalAddress, type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import { Channel, type ChannelTools } from "./channel.ts";
import { changeOfLine, changeOfRecord, changesOfEvent, type NoticeChange } from "./notices.ts";

export interface NotifierTools
  extends Pick<ChannelTools, "clock" | "emit" | "stop" | "temporary" | "patience" | "journal" | "origin"> {
  /** In the work folder. */
  readonly folder: string;
  /** Several processes use the work folder. */
  readonly isShared: boolean;
  /** Identifies this process among them. */
  readonly process: string;
  hasEnded(process: string): Promise<boolean>;
  /** The base URL of a mailbox's service. */
  serviceOf(mailbox: string): string | undefined;
}

export interface NotifySettings {
  readonly notify?: readonly ChannelSettings[] | undefined;
  readonly mailboxes: readonly ShownMailbox[];
}

/** How often to try for the lock, to read what other processes have written, and to repeat what the disk has refused. */
const TICK_MS = 5_000;

/** Never throws: failures are events. */
export class Notifier {
  readonly #tools: NotifierTools;
  #channels: ReadonlyMap<string, Channel> = new Map();
  #mailboxes: ReadonlyMap<MailboxId, ShownMailbox> = new Map();
  /** Adds a change to the journal. Missing while the journal is not open. */
  record: ((change: NoticeChange) => void) | undefined;
  /** How many changes this process has published. */
  #published = 0;
  #lock: KernelLock | undefined;
  #isSender = false;
  /** One at a time: a second attempt would find the lock of the first one held. */
  readonly #leading = new Coalesced(() => this.#tryLead());
  #isClosed = false;
  #timer: Timer | undefined;

  constructor(tools: NotifierTools, settings: NotifySettings) {
    this.#tools = tools;
    this.#configure(settings);
  }

  readonly listener: Emit = (event) => {
    const { clock, patience, process, serviceOf } = this.#tools;
    const context = { nowMs: clock.now(), blipMs: patience.blipMs, process, serviceOf };
    for (const change of changesOfEvent(event, context)) this.#publish(change);
  };

  /** Begins a notice for each of these transfers that waits for a person, unless it is known. */
  review(records: Iterable<TransferRecord>): void {
    const names = new Set([...this.#mailboxes.keys()].map(canonicalAddress));
    for (const record of records) {
      if (!names.has(canonicalAddress(record.mailbox))) continue;
      this.#publish(changeOfRecord(record, this.#tools.clock.now()));
    }
  }

  /** The journal has new lines. `refused`: lines that the disk did not accept. */
  readonly journalWritten = (refused: readonly string[]): void => {
    const nowMs = this.#tools.clock.now();
    const changes = refused.flatMap((line) => changeOfLine(JSON.parse(line), nowMs) ?? []);
    for (const channel of this.#channels.values()) {
      for (const change of changes) channel.accept(change);
      channel.wake();
    }
  };

  /** Resumes the notices of earlier runs. May be called twice. */
  async start(): Promise<void> {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => void this.#tick(), TICK_MS).unref();
    await this.#leading.run();
    await this.#forEach((channel) => channel.load());
    await this.#endNoticesOfDead();
    if (!this.#tools.isShared) this.#keepPolled(new Map());
  }

  /** Applies new settings. Channels that are still configured keep their notices. */
  async apply(settings: NotifySettings): Promise<void> {
    const [channels, mailboxes] = [this.#channels, this.#mailboxes];
    this.#configure(settings);
    this.#keepPolled(mailboxes);
    const removed = [...channels].filter(([id]) => !this.#channels.has(id));
    const added = [...this.#channels].filter(([id]) => !channels.has(id));
    await Promise.all(removed.map(([, channel]) => channel.close()));
    // A process without a channel has not tried for the lock yet.
    await this.#leading.run();
    await Promise.all(added.map(([, channel]) => channel.load()));
  }

  /** Each message is tried when it is due. */
  *promised(): Iterable<Promised> {
    for (const { dueMs, described } of this.#channels.values()) {
      if (dueMs === undefined) continue;
      const text = `A message has waited for too long: ${described}.`;
      yield { kind: "notification", subject: described, text, dueMs: dueMs + WITHIN_MS, graceMs: WITHIN_MS };
    }
  }

  /** Sends what is due, without gathering. */
  finish(): Promise<void> {
    return this.#forEach((channel) => channel.finish());
  }

  /** Closes the lock file, so that the lost disk of the work folder can be unmounted. */
  release(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  /** Pending notices are kept for the next start. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#isClosed = true;
    await this.#forEach((channel) => channel.close());
    this.release();
  }

  /** Applies the change at once, and adds it to the journal if it is new. */
  #publish(change: NoticeChange): void {
    this.#published++;
    const numbered = { ...change, process: this.#tools.process, seq: this.#published };
    const isNew = [...this.#channels.values()].map((channel) => channel.accept(numbered));
    if (isNew.includes(true)) this.record?.(numbered);
  }

  async #tick(): Promise<void> {
    const wasSender = this.#isSender;
    await this.#leading.run();
    if (this.#isSender && !wasSender) await this.#forEach((channel) => channel.load());
    if (this.#tools.isShared) await this.#endNoticesOfDead();
    for (const channel of this.#channels.values()) {
      if (this.#tools.isShared) channel.wake();
      channel.retry();
    }
  }

  /** Without working locks, several processes send, and messages are repeated. */
  async #tryLead(): Promise<void> {
    const { folder } = this.#tools;
    if (this.#isClosed || this.#lock !== undefined || this.#channels.size === 0) return;
    try {
      if (await exists(dirname(folder))) await makeFolderDurably(folder, 0o700);
      this.#lock = await tryLock(join(folder, "lock"), "alone");
      this.#isSender = this.#lock !== undefined;
    } catch {
      this.#isSender = true;
    }
  }

  /** Ends the notices of processes that no longer run. */
  async #endNoticesOfDead(): Promise<void> {
    const { process: own, hasEnded, clock } = this.#tools;
    const channels = [...this.#channels.values()];
    for (const process of new Set(channels.flatMap(({ processes }) => processes))) {
      // If this cannot be found out, the next tick asks again.
      if (process === own || !(await hasEnded(process).catch(() => false))) continue;
      for (const channel of channels) channel.update((state) => state.release(process, clock.now()));
    }
  }

  /**
   * Ends the notices of mailboxes that are no longer polled. `before`: the mailboxes of the settings until now. With a shared
   * work folder, another process may poll a mailbox that is in neither.
   */
  #keepPolled(before: ReadonlyMap<MailboxId, ShownMailbox>): void {
    const isForeign = (id: MailboxId) => this.#tools.isShared && !before.has(id);
    const isPolled = (name: string) => {
      const id = mailboxIdOf(name);
      return this.#mailboxes.get(id)?.paused === false || isForeign(id);
    };
    for (const channel of this.#channels.values()) channel.update((state) => state.keepPolled(isPolled));
  }

  async #forEach(work: (channel: Channel) => Promise<void>): Promise<void> {
    await Promise.all([...this.#channels.values()].map(work));
  }

  #configure({ notify = [], mailboxes }: NotifySettings): void {
    this.#mailboxes = new Map(mailboxes.map((mailbox) => [mailboxIdOf(mailbox.name), mailbox]));
    const channels = new Map<string, Channel>();
    for (const [id, settings] of identify(notify)) {
      const channel = this.#channels.get(id);
      channel?.change(settings);
      channels.set(id, channel ?? new Channel(id, settings, this.#toolsFor(id)));
    }
    this.#channels = channels;
  }

  #toolsFor(id: string): ChannelTools {
    return {
      ...this.#tools,
      path: join(this.#tools.folder, `${id}.json`),
      isSender: () => this.#isSender,
      addressOf: (mailbox) => this.#mailboxes.get(mailboxIdOf(mailbox))?.email,
      labelOf: (mailbox) => this.#mailboxes.get(mailboxIdOf(mailbox))?.label ?? mailbox,
      othersFailing: (channel) =>
        [...this.#channels.values()].filter((other) => other !== channel && other.isFailing).length,
    };
  }
}

/** The receiver identifies a channel, so notices survive a change of `on` or `quiet`. Channels with the same receiver are numbered. */
function identify(notify: readonly ChannelSettings[]): [string, ChannelSettings][] {
  const seen = new Map<string, number>();
  return notify.map((settings) => {
    const receiver = hash("sha256", receiverOf(settings.channel)).slice(0, 16);
    const number = seen.get(receiver) ?? 0;
    seen.set(receiver, number + 1);
    return [number === 0 ? receiver : `${receiver}-${number}`, settings];
  });
}

function receiverOf(channel: MailChannel | WebhookChannel): string {
  return channel.kind === "webhook"
    ? channel.url.href
    : [channel.host, channel.port, ...channel.to].join(" ");
}
