/** Metrics for Prometheus. Labels are names of configured mailboxes and fixed words, never text from a sender. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Clock } from "../base/clock.ts";
import { listenTo, type ShownMailbox } from "../model/events.ts";
import { NO_HANDOFFS } from "../model/handoff.ts";
import { PROMISE_KINDS } from "../model/promise.ts";
import { isDelivered, STATES, type State, type TransferRecord } from "../model/record.ts";
import type { MailboxStatus, Status } from "../model/status.ts";
import { GENERAL_TROUBLES } from "./board.ts";

/** Mailboxes beyond this number share one label. */
const MAX_MAILBOXES = 1_000;
const OTHERS = "(others)";

/** States of transfers that are not delivered. */
const UNDELIVERED = STATES.filter((state) => !isDelivered({ state }));
const ENDS: readonly State[] = ["delivered", "quarantined", "gone"];
const POLL_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Up to a week. */
const DELIVERY_SECONDS = [1, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400, 604_800];

/** Each metric with its help. */
export const HELP = {
  inlet_polls_total: "Polls, by how they ended.",
  inlet_discovered_total: "Transfers that were found.",
  inlet_ended_total: "Transfers, by the state in which they ended.",
  inlet_received_bytes_total: "Bytes received of transfers.",
  inlet_waits_total: "How often a transfer had to wait, by the reason.",
  inlet_passwords_refused_total: "Passwords that were refused.",
  inlet_poll_seconds: "How long polls took.",
  inlet_delivery_seconds: "How long transfers took from their discovery to their delivery.",
  inlet_handoff_total:
    "Attempts to run the command or to call the webhook after a delivery, by how they ended.",
  inlet_notifications_total: "Attempts to send a notification, by how they ended.",
  inlet_callers_limited_total: "Callers of the console that exceeded a limit, by the limit.",
  inlet_build_info: "The version that runs.",
  inlet_transfers: "Transfers that are not delivered, by state.",
  inlet_trouble:
    "1 where a disk cannot be used, the queue does not work, a configuration was refused, or a notification failed.",
  inlet_overdue_seconds:
    "For how long something should have happened that has not, by its kind; 0 if nothing is late.",
  inlet_attention: "Transfers, hand-offs and list entries that need a person.",
  inlet_oldest_waiting_seconds: "How long the oldest transfer has waited, without downloads.",
  inlet_not_picked_up: "Delivered folders that no consumer has picked up.",
  inlet_oldest_not_picked_up_seconds:
    "How long ago the oldest folder was delivered that no consumer has picked up.",
  inlet_free_bytes: "Free bytes on the inbox's disk.",
  inlet_queue_depth: "Jobs that wait for a slot.",
  inlet_mailbox_up: "1 where the last poll succeeded.",
  inlet_mailbox_last_success_seconds: "Seconds since the last poll that succeeded.",
  inlet_mailbox_poll_interval_seconds: "How often it is polled.",
  inlet_expected_missing: "Expected transfers that did not arrive.",
  inlet_mailbox_verification_ends: "1 where a person has to verify the address again.",
  inlet_mailbox_token_valid_seconds: "For how long the token is valid.",
  process_start_time_seconds: "When the process began.",
  process_resident_memory_bytes: "Resident memory.",
  process_cpu_seconds_total: "CPU time.",
} as const;

type Name = keyof typeof HELP;

/** Measured for each scrape; `undefined` if that is impossible now. */
interface Surroundings {
  readonly freeBytes: number | undefined;
  /** How many jobs wait for a slot. */
  readonly queueDepth: number | undefined;
}

type Show = (name: Name, value: number | undefined, label?: Readonly<Record<string, string>>) => void;

export class Metrics {
  readonly #registry = new Registry();
  readonly #clock: Clock;
  readonly #version: string;
  readonly #startedSeconds: number;
  readonly #readStatus: () => Status;
  #summary = NO_HANDOFFS;
  /** By key. */
  #labels: ReadonlyMap<string, string> = new Map();
  readonly #polls = this.#counter("inlet_polls_total", "mailbox", "result");
  readonly #discovered = this.#counter("inlet_discovered_total", "mailbox");
  readonly #ended = this.#counter("inlet_ended_total", "mailbox", "state");
  readonly #bytes = this.#counter("inlet_received_bytes_total");
  readonly #waits = this.#counter("inlet_waits_total", "reason");
  readonly #refusals = this.#counter("inlet_passwords_refused_total", "mailbox");
  readonly #pollSeconds = this.#histogram("inlet_poll_seconds", POLL_SECONDS);
  readonly #deliverySeconds = this.#histogram("inlet_delivery_seconds", DELIVERY_SECONDS);
  readonly #handoffs = this.#counter("inlet_handoff_total", "step", "result");
  readonly #callers = this.#counter("inlet_callers_limited_total", "limit");
  readonly #notifications = this.#counter("inlet_notifications_total", "channel", "result");

  constructor(mailboxes: readonly ShownMailbox[], version: string, readStatus: () => Status, clock: Clock) {
    this.#clock = clock;
    this.#version = version;
    this.#startedSeconds = clock.now() / 1000 - process.uptime();
    this.#readStatus = readStatus;
    this.#setMailboxes(mailboxes);
  }

  readonly listener = listenTo({
    "poll-succeeded": ({ mailbox, tookMs }) => this.#polled(mailbox, "ok", tookMs),
    "poll-failed": ({ mailbox, tookMs }) => this.#polled(mailbox, "failed", tookMs),
    "transfer-discovered": ({ record }) => this.#discovered.inc({ mailbox: this.#labelOf(record.mailbox) }),
    "callers-limited": ({ limit, count }) => this.#callers.inc({ limit }, count),
    "password-refused": ({ record }) => this.#refusals.inc({ mailbox: this.#labelOf(record.mailbox) }),
    "transfer-progressed": ({ receivedBytes }) => this.#bytes.inc(receivedBytes),
    "transfer-changed": ({ record }) => this.#changed(record),
    "handoff-succeeded": ({ step }) => this.#handoffs.inc({ step, result: "ok" }),
    "handoff-failed": ({ step }) => this.#handoffs.inc({ step, result: "failed" }),
    "notify-succeeded": ({ kind, notices }) =>
      notices > 0 && this.#notifications.inc({ channel: kind, result: "ok" }),
    "notify-failed": ({ kind }) => this.#notifications.inc({ channel: kind, result: "failed" }),
    "outbox-scanned": ({ summary }) => {
      this.#summary = summary;
    },
    "settings-reloaded": ({ mailboxes }) => this.#setMailboxes(mailboxes),
    "pauses-changed": ({ mailboxes }) => this.#setMailboxes(mailboxes),
    "mailboxes-named": ({ mailboxes }) => this.#setMailboxes(mailboxes),
  });

  /** What was counted since the start, and the figures of this moment. */
  async text({ freeBytes, queueDepth }: Surroundings): Promise<string> {
    const status = this.#readStatus();
    const { counts, troubles, overdue, totals, waitingSince, mailboxes } = status;
    const now = new Registry();
    const show: Show = (name, value, label = {}) => {
      // 0 would look measured.
      if (value === undefined) return;
      const options = { name, help: HELP[name], labelNames: Object.keys(label), registers: [now] };
      const gauge = (now.getSingleMetric(name) as Gauge | undefined) ?? new Gauge(options);
      gauge.set(label, value);
    };
    show("inlet_build_info", 1, { version: this.#version });
    for (const state of UNDELIVERED) show("inlet_transfers", counts[state] ?? 0, { state });
    for (const what of GENERAL_TROUBLES)
      show("inlet_trouble", Number(troubles.some((it) => it.what === what)), { what });
    // Kinds that were never late are shown too, with 0.
    for (const kind of PROMISE_KINDS) {
      const late = overdue.filter((it) => it.kind === kind).map(({ since }) => this.#secondsSince(since));
      show("inlet_overdue_seconds", Math.max(0, ...late), { kind });
    }
    show("inlet_attention", totals.attention);
    show("inlet_oldest_waiting_seconds", this.#secondsSince(waitingSince));
    show("inlet_not_picked_up", this.#summary.waiting);
    show("inlet_oldest_not_picked_up_seconds", this.#secondsSince(this.#summary.oldestMs));
    show("inlet_free_bytes", freeBytes);
    show("inlet_queue_depth", queueDepth);
    const shown = new Set(this.#labels.values());
    for (const mailbox of mailboxes) {
      if (shown.has(mailbox.name)) this.#showMailbox(mailbox, status, show);
    }
    this.#showProcess(show, now);
    return `${await this.#registry.metrics()}${await now.metrics()}`;
  }

  #showMailbox(mailbox: MailboxStatus, { troubles }: Status, show: Show): void {
    const { name, paused, trouble, lastPoll, lastSuccess, pollSeconds, tokenValidUntil } = mailbox;
    const count = (wanted: string) =>
      troubles.filter(({ what, code }) => what === `mailbox ${name}` && code === wanted).length;
    const label = { mailbox: name };
    show("inlet_expected_missing", count("ARRIVAL_MISSED"), label);
    if (tokenValidUntil !== undefined) {
      const validMs = Date.parse(tokenValidUntil) - this.#clock.now();
      show("inlet_mailbox_token_valid_seconds", validMs / 1000, label);
    }
    if (paused) return;
    if (lastPoll !== undefined) show("inlet_mailbox_up", Number(trouble === undefined), label);
    if (lastSuccess !== undefined)
      show("inlet_mailbox_last_success_seconds", this.#secondsSince(lastSuccess), label);
    show("inlet_mailbox_poll_interval_seconds", pollSeconds, label);
    show("inlet_mailbox_verification_ends", count("VERIFICATION_ENDS"), label);
  }

  /** Under their usual names. The library's own set would wake an idle process a hundred times a second. */
  #showProcess(show: Show, now: Registry): void {
    const { user, system } = process.cpuUsage();
    show("process_start_time_seconds", this.#startedSeconds);
    show("process_resident_memory_bytes", process.memoryUsage.rss());
    const name = "process_cpu_seconds_total";
    new Counter({ name, help: HELP[name], registers: [now] }).inc((user + system) / 1_000_000);
  }

  /** A series that begins with the first event hides that event, because Prometheus never saw it at 0. */
  #setMailboxes(mailboxes: readonly ShownMailbox[]): void {
    this.#labels = new Map(mailboxes.slice(0, MAX_MAILBOXES).map(({ name, label = name }) => [name, label]));
    for (const mailbox of this.#labels.values()) {
      for (const state of ENDS) this.#ended.inc({ mailbox, state }, 0);
      this.#refusals.inc({ mailbox }, 0);
    }
  }

  #polled(mailbox: string, result: "ok" | "failed", tookMs: number): void {
    this.#polls.inc({ mailbox: this.#labelOf(mailbox), result });
    this.#pollSeconds.observe(tookMs / 1000);
  }

  #changed({ mailbox, state, reason = "", at }: TransferRecord): void {
    if (state === "waiting") this.#waits.inc({ reason });
    if (!ENDS.includes(state)) return;
    this.#ended.inc({ mailbox: this.#labelOf(mailbox), state });
    if (state !== "delivered" || at.discovered === undefined) return;
    this.#deliverySeconds.observe(this.#secondsSince(at.discovered));
  }

  #labelOf(mailbox: string): string {
    return this.#labels.get(mailbox) ?? OTHERS;
  }

  /** 0 without a time. */
  #secondsSince(time: string | number | undefined): number {
    const nowMs = this.#clock.now();
    return Math.max(0, nowMs - new Date(time ?? nowMs).getTime()) / 1000;
  }

  #counter<Label extends string>(name: Name, ...labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help: HELP[name], labelNames, registers: [this.#registry] });
  }

  #histogram(name: Name, buckets: number[]): Histogram {
    return new Histogram({ name, help: HELP[name], buckets, registers: [this.#registry] });
  }
}
