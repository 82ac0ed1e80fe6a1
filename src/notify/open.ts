/** Notifications: each configured way subscribes to the daemon's events, and sends mails or calls a webhook. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { type DaemonEvent, type Emit, listenTo, type ShownMailbox } from "../model/events.ts";
import type { MailWay, Notification, WebhookWay } from "../model/notify.ts";
import type { Sender } from "./message.ts";
import { type NotifyPatience, Way, type WayTools } from "./way.ts";

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
  readonly sender: Omit<Sender, "console" | "hasSeveralMailboxes">;
  /** The base URL of a mailbox's service. */
  serviceOf(mailbox: string): string | undefined;
}

/** Never blocks, and never throws: failures are events. */
export class Notifier {
  readonly #tools: NotifierTools;
  readonly #ways = new Map<string, Way>();
  #mailboxes: ReadonlyMap<string, ShownMailbox> = new Map();
  #console: string | undefined;
  #isStarted = false;

  constructor(tools: NotifierTools, settings: NotifySettings) {
    this.#tools = tools;
    this.#apply(settings);
  }

  readonly listener: Emit = (event: DaemonEvent) => {
    this.#learn(event);
    for (const way of this.#ways.values()) way.accept(event);
  };

  readonly #learn = listenTo({
    "console-opened": ({ address }) => {
      this.#console = address;
    },
  });

  /** Resumes the notices of earlier runs. Only a process that may work on the work folder calls it. May be called twice. */
  async start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    await Promise.all([...this.#ways.values()].map((way) => way.start()));
  }

  /** Applies new settings. Ways that are still configured keep their notices. */
  async apply(settings: NotifySettings): Promise<void> {
    const before = new Set(this.#ways.keys());
    const removed = this.#apply(settings);
    const added = [...this.#ways].filter(([id]) => !before.has(id)).map(([, way]) => way);
    await Promise.all([...removed.map((way) => way.close()), ...added.map((way) => way.start())]);
  }

  /** Sends what is due, without gathering. */
  async finish(): Promise<void> {
    await Promise.all([...this.#ways.values()].map((way) => way.finish()));
  }

  /** Pending notices are kept for the next start. */
  async close(): Promise<void> {
    await Promise.all([...this.#ways.values()].map((way) => way.close()));
  }

  /** Returns the ways that are no longer configured. */
  #apply({ notify = [], mailboxes }: NotifySettings): Way[] {
    this.#mailboxes = new Map(mailboxes.map((mailbox) => [mailbox.name, mailbox]));
    const wanted = new Map(identify(notify));
    const removed = [...this.#ways].filter(([id]) => !wanted.has(id));
    for (const [id] of removed) this.#ways.delete(id);
    for (const [id, settings] of wanted) {
      const known = this.#ways.get(id);
      if (known !== undefined) known.change(settings);
      else this.#ways.set(id, new Way(id, settings, this.#toolsFor(id)));
    }
    return removed.map(([, way]) => way);
  }

  #toolsFor(id: string): WayTools {
    const { clock, emit, stop, state, work, isShared, patience, sender, serviceOf } = this.#tools;
    return {
      clock,
      emit,
      stop,
      isShared,
      patience,
      folder: join(state, "notify", digestOf(`${work}\0${id}`)),
      sender: () => ({ ...sender, console: this.#console, hasSeveralMailboxes: this.#mailboxes.size > 1 }),
      mailboxes: () => this.#mailboxes,
      serviceOf,
      othersFailing: (way) =>
        [...this.#ways.values()].filter((other) => other !== way && other.isFailing).length,
    };
  }
}

export interface NotifySettings {
  readonly notify?: readonly Notification[] | undefined;
  readonly mailboxes: readonly ShownMailbox[];
}

/** The receiver identifies a way, so notices survive a change of `on` or `quiet`. Ways with the same receiver are numbered. */
function identify(notify: readonly Notification[]): [string, Notification][] {
  const seen = new Map<string, number>();
  return notify.map((settings) => {
    const receiver = digestOf(receiverOf(settings.way));
    const number = seen.get(receiver) ?? 0;
    seen.set(receiver, number + 1);
    return [number === 0 ? receiver : `${receiver}-${number}`, settings];
  });
}

function receiverOf(way: MailWay | WebhookWay): string {
  return way.kind === "webhook" ? way.url.href : [way.host, way.port, ...way.to].join(" ");
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
