/** Notifications: each configured channel subscribes to the daemon's events, and sends mails or calls a webhook. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { type DaemonEvent, type Emit, listenTo, type ShownMailbox } from "../model/events.ts";
import type { ChannelSettings, MailChannel, WebhookChannel } from "../model/notify.ts";
import { Channel, type ChannelTools, type NotifyPatience } from "./channel.ts";
import type { MessageOrigin } from "./message.ts";

export interface NotifierTools {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly stop: AbortSignal;
  readonly state: string;
  /** Several daemons may use one state folder: each work folder has its own notices. */
  readonly work: string;
  /** Several processes work on this work folder. */
  readonly isShared: boolean;
  readonly patience: NotifyPatience;
  readonly origin: Omit<MessageOrigin, "console" | "hasSeveralMailboxes">;
  /** The base URL of a mailbox's service. */
  serviceOf(mailbox: string): string | undefined;
}

/** Never blocks, and never throws: failures are events. */
export class Notifier {
  readonly #tools: NotifierTools;
  readonly #channels = new Map<string, Channel>();
  #mailboxes: ReadonlyMap<string, ShownMailbox> = new Map();
  #console: string | undefined;
  #isStarted = false;

  constructor(tools: NotifierTools, settings: NotifySettings) {
    this.#tools = tools;
    this.#apply(settings);
  }

  readonly listener: Emit = (event: DaemonEvent) => {
    this.#learn(event);
    for (const channel of this.#channels.values()) channel.accept(event);
  };

  readonly #learn = listenTo({
    "console-opened": ({ address }) => {
      this.#console = address;
    },
  });

  /** Resumes the notices of earlier runs. Call it after the work folder is locked. May be called twice. */
  async start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    await Promise.all([...this.#channels.values()].map((channel) => channel.start()));
  }

  /** Applies new settings. Channels that are still configured keep their notices. */
  async apply(settings: NotifySettings): Promise<void> {
    const before = new Set(this.#channels.keys());
    const removed = this.#apply(settings);
    const added = [...this.#channels].filter(([id]) => !before.has(id)).map(([, channel]) => channel);
    await Promise.all([
      ...removed.map((channel) => channel.close()),
      ...added.map((channel) => channel.start()),
    ]);
  }

  /** Sends what is due, without gathering. */
  async finish(): Promise<void> {
    await Promise.all([...this.#channels.values()].map((channel) => channel.finish()));
  }

  /** Pending notices are kept for the next start. */
  async close(): Promise<void> {
    await Promise.all([...this.#channels.values()].map((channel) => channel.close()));
  }

  /** Returns the channels that are no longer configured. */
  #apply({ notify = [], mailboxes }: NotifySettings): Channel[] {
    this.#mailboxes = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]));
    const wanted = new Map(identify(notify));
    const removed = [...this.#channels].filter(([id]) => !wanted.has(id));
    for (const [id] of removed) this.#channels.delete(id);
    for (const [id, settings] of wanted) {
      const known = this.#channels.get(id);
      if (known !== undefined) known.change(settings);
      else this.#channels.set(id, new Channel(id, settings, this.#toolsFor(id)));
    }
    return removed.map(([, channel]) => channel);
  }

  #toolsFor(id: string): ChannelTools {
    const { clock, emit, stop, state, work, isShared, patience, origin, serviceOf } = this.#tools;
    return {
      clock,
      emit,
      stop,
      isShared,
      patience,
      folder: join(state, "notify", digestOf(`${work}\0${id}`)),
      origin: () => ({ ...origin, console: this.#console, hasSeveralMailboxes: this.#mailboxes.size > 1 }),
      mailboxes: () => this.#mailboxes,
      serviceOf,
      othersFailing: (channel) =>
        [...this.#channels.values()].filter((other) => other !== channel && other.isFailing).length,
    };
  }
}

export interface NotifySettings {
  readonly notify?: readonly ChannelSettings[] | undefined;
  readonly mailboxes: readonly ShownMailbox[];
}

/** The receiver identifies a channel, so notices survive a change of `on` or `quiet`. Channels with the same receiver are numbered. */
function identify(notify: readonly ChannelSettings[]): [string, ChannelSettings][] {
  const seen = new Map<string, number>();
  return notify.map((settings) => {
    const receiver = digestOf(receiverOf(settings.channel));
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

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
