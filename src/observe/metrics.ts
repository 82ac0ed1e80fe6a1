/** Metrics for Prometheus. Labels are names of configured mailboxes and fixed words, never text from a sender. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Clock } from "../base/clock.ts";
import { listenTo, type ShownMailbox } from "../model/events.ts";
import type { HandoffSummary } from "../model/handoff.ts";
import { PROMISE_KINDS } from "../model/promise.ts";
import type { State, TransferRecord } from "../model/record.ts";
import type { Status } from "../model/status.ts";

/** Mailboxes beyond this number share one label. */
const MAX_MAILBOXES = 1_000;
const OTHERS = "(others)";

const STATES: readonly State[] = [
  "discovered",
  "downloading",
  "waiting",
  "checking",
  "delivering",
  "quarantined",
  "gone",
];
const ENDS: readonly State[] = ["delivered", "quarantined", "gone"];
const TROUBLES = ["disk", "queue", "configuration", "handoffs", "notify"] as const;
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** Measured for each scrape; `undefined` if that is impossible now. */
interface Surroundings {
  readonly freeBytes: number | undefined;
  /** How many jobs wait for a slot. */
  readonly queueDepth: number | undefined;
}

export class Metrics {
  readonly #registry = new Registry();
  readonly #clock: Clock;
  readonly #readStatus: () => Status;
  /** The status at the last scrape, so that all figures are of one moment. */
  #status: Status;
  #surroundings: Surroundings = { freeBytes: undefined, queueDepth: undefined };
  readonly #perMailbox: Gauge<"mailbox">[] = [];
  #labels: ReadonlySet<string>;
  readonly #polls = this.#counter("inlet_polls_total", "Polls, by how they ended.", ["mailbox", "result"]);
  readonly #discovered = this.#counter("inlet_discovered_total", "Transfers that were found.", ["mailbox"]);
  readonly #ended = this.#counter("inlet_ended_total", "Transfers, by the state in which they ended.", [
    "mailbox",
    "state",
  ]);
  readonly #bytes = this.#counter("inlet_received_bytes_total", "Bytes received of transfers.", []);
  readonly #waits = this.#counter("inlet_waits_total", "How often a transfer had to wait, by the reason.", [
    "reason",
  ]);
  readonly #refusals = this.#counter("inlet_passwords_refused_total", "Passwords that were refused.", [
    "mailbox",
  ]);
  readonly #pollSeconds = new Histogram({
    name: "inlet_poll_seconds",
    help: "How long polls took.",
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, MINUTE],
    registers: [this.#registry],
  });
  readonly #deliverySeconds = new Histogram({
    name: "inlet_delivery_seconds",
    help: "How long transfers took from their discovery to their delivery.",
    buckets: [1, 5, 15, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY],
    registers: [this.#registry],
  });

  readonly #handoffs = this.#counter(
    "inlet_handoff_total",
    "Attempts to run the command or to call the webhook after a delivery, by how they ended.",
    ["step", "result"],
  );
  readonly #notifications = this.#counter(
    "inlet_notifications_total",
    "Attempts to send a notification, by how they ended.",
    ["channel", "result"],
  );
  #summary: HandoffSummary = { waiting: 0, oldestMs: undefined, troubled: 0, troubles: [] };

  constructor(mailboxes: readonly ShownMailbox[], version: string, readStatus: () => Status, clock: Clock) {
    this.#clock = clock;
    this.#readStatus = readStatus;
    this.#status = readStatus();
    this.#labels = labelsOf(mailboxes);
    this.#beginSeries();
    this.#gaugeProcess();
    this.#gauge("inlet_build_info", "The version that runs.", ["version"]).set({ version }, 1);
    this.#gaugeStatus();
    this.#gaugeOverdue();
    this.#gaugeMailboxes();
    this.#gaugeHandoffs();
    this.#gaugeSurroundings();
  }

  text(surroundings: Surroundings): Promise<string> {
    this.#surroundings = surroundings;
    this.#status = this.#readStatus();
    return this.#registry.metrics();
  }

  readonly listener = listenTo({
    "poll-succeeded": ({ mailbox, tookMs }) => this.#polled(mailbox, "ok", tookMs),
    "poll-failed": ({ mailbox, tookMs }) => this.#polled(mailbox, "failed", tookMs),
    "transfer-discovered": ({ record }) => this.#discovered.inc({ mailbox: this.#labelOf(record.mailbox) }),
    "password-refused": ({ record }) => this.#refusals.inc({ mailbox: this.#labelOf(record.mailbox) }),
    "transfer-progressed": ({ receivedBytes }) => this.#bytes.inc(receivedBytes),
    "transfer-changed": ({ record }) => this.#changed(record),
    "handoff-succeeded": ({ step }) => this.#handoffs.inc({ step, result: "ok" }),
    "handoff-failed": ({ step }) => this.#handoffs.inc({ step, result: "failed" }),
    "notify-succeeded": ({ kind }) => this.#notifications.inc({ channel: kind, result: "ok" }),
    "recipients-refused": ({ kind }) => this.#notifications.inc({ channel: kind, result: "failed" }),
    "notify-failed": ({ kind }) => this.#notifications.inc({ channel: kind, result: "failed" }),
    "outbox-scanned": ({ summary }) => {
      this.#summary = summary;
    },
    "settings-reloaded": ({ mailboxes }) => this.#setMailboxes(mailboxes),
    "pauses-changed": ({ mailboxes }) => this.#setMailboxes(mailboxes),
  });

  #setMailboxes(mailboxes: readonly ShownMailbox[]): void {
    this.#labels = labelsOf(mailboxes);
    for (const gauge of this.#perMailbox) gauge.reset();
    this.#beginSeries();
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
    this.#deliverySeconds.observe(Math.max(0, this.#clock.now() - Date.parse(at.discovered)) / 1000);
  }

  /** A series that begins with the first event hides that event, because Prometheus never saw it at 0. */
  #beginSeries(): void {
    for (const mailbox of this.#labels) {
      for (const state of ENDS) this.#ended.inc({ mailbox, state }, 0);
      this.#refusals.inc({ mailbox }, 0);
    }
  }

  #gaugeStatus(): void {
    const clock = this.#clock;
    this.#gauge("inlet_transfers", "Transfers that are not delivered, by state.", ["state"], (gauge) => {
      const { counts } = this.#status;
      for (const state of STATES) gauge.set({ state }, counts[state] ?? 0);
    });
    this.#gauge("inlet_attention", "Transfers, hand-offs and list entries that need a person.", [], (gauge) =>
      gauge.set(this.#status.totals.attention),
    );
    this.#gauge(
      "inlet_oldest_waiting_seconds",
      "How long the oldest transfer has waited, without downloads.",
      [],
      (gauge) => {
        const { waitingSince: oldest } = this.#status;
        gauge.set(oldest === undefined ? 0 : Math.max(0, clock.now() - Date.parse(oldest)) / 1000);
      },
    );
    this.#gauge(
      "inlet_trouble",
      "1 where a disk cannot be used, the queue does not work, a configuration was refused, or a notification failed.",
      ["what"],
      (gauge) => {
        const { troubles } = this.#status;
        for (const what of TROUBLES) gauge.set({ what }, troubles.some((it) => it.what === what) ? 1 : 0);
      },
    );
  }

  /** Also for what never happened. */
  #gaugeOverdue(): void {
    const help =
      "For how long something should have happened that has not, by its kind; 0 if nothing is late.";
    this.#gauge("inlet_overdue_seconds", help, ["kind"], (gauge) => {
      const nowMs = this.#clock.now();
      for (const kind of PROMISE_KINDS) {
        const late = this.#status.overdue
          .filter((it) => it.kind === kind)
          .map(({ since }) => Date.parse(since));
        gauge.set({ kind }, Math.max(0, nowMs - Math.min(nowMs, ...late)) / 1000);
      }
    });
  }

  #gaugeMailboxes(): void {
    const clock = this.#clock;
    const each = (
      name: string,
      help: string,
      read: (mailbox: Status["mailboxes"][number]) => number | undefined,
    ) =>
      this.#perMailbox.push(
        this.#gauge(name, help, ["mailbox"], (gauge) => {
          for (const mailbox of this.#status.mailboxes) {
            const value = read(mailbox);
            if (value !== undefined && this.#labels.has(mailbox.name))
              gauge.set({ mailbox: mailbox.name }, value);
          }
        }),
      );
    each("inlet_mailbox_up", "1 where the last poll succeeded.", ({ trouble, lastPoll, paused }) => {
      if (paused || lastPoll === undefined) return undefined;
      return trouble === undefined ? 1 : 0;
    });
    each(
      "inlet_mailbox_last_success_seconds",
      "Seconds since the last poll that succeeded.",
      ({ lastSuccess, paused }) =>
        paused || lastSuccess === undefined
          ? undefined
          : Math.max(0, clock.now() - Date.parse(lastSuccess)) / 1000,
    );
    each("inlet_mailbox_poll_interval_seconds", "How often it is polled.", ({ pollSeconds, paused }) =>
      paused ? undefined : pollSeconds,
    );
    const troublesOf = (name: string, wanted: string) =>
      this.#status.troubles.filter(({ what, code }) => what === `mailbox ${name}` && code === wanted).length;
    each("inlet_expected_missing", "Expected transfers that did not arrive.", ({ name }) =>
      troublesOf(name, "ARRIVAL_MISSED"),
    );
    each(
      "inlet_mailbox_verification_ends",
      "1 where a person has to verify the address again.",
      ({ name, paused }) => (paused ? undefined : troublesOf(name, "VERIFICATION_ENDS")),
    );
    each("inlet_mailbox_token_valid_seconds", "For how long the token is valid.", ({ tokenValidUntil }) =>
      tokenValidUntil === undefined ? undefined : (Date.parse(tokenValidUntil) - clock.now()) / 1000,
    );
  }

  #gaugeHandoffs(): void {
    this.#gauge("inlet_not_picked_up", "Delivered folders that no consumer has picked up.", [], (gauge) =>
      gauge.set(this.#summary.waiting),
    );
    this.#gauge(
      "inlet_oldest_not_picked_up_seconds",
      "How long ago the oldest folder was delivered that no consumer has picked up.",
      [],
      (gauge) => {
        const { oldestMs } = this.#summary;
        gauge.set(oldestMs === undefined ? 0 : Math.max(0, this.#clock.now() - oldestMs) / 1000);
      },
    );
  }

  #gaugeSurroundings(): void {
    const each = (name: string, help: string, key: keyof Surroundings) =>
      this.#gauge(name, help, [], (gauge) => {
        const value = this.#surroundings[key];
        // A reset would show 0, which looks like a measured value.
        if (value === undefined) gauge.remove();
        else gauge.set(value);
      });
    each("inlet_free_bytes", "Free bytes on the inbox's disk.", "freeBytes");
    each("inlet_queue_depth", "Jobs that wait for a slot.", "queueDepth");
  }

  /** Under their usual names. The library's own set would wake an idle process a hundred times a second. */
  #gaugeProcess(): void {
    const startedSeconds = this.#clock.now() / 1000 - process.uptime();
    this.#gauge("process_start_time_seconds", "When the process began.", []).set(startedSeconds);
    this.#gauge("process_resident_memory_bytes", "Resident memory.", [], (gauge) =>
      gauge.set(process.memoryUsage.rss()),
    );
    new Counter({
      name: "process_cpu_seconds_total",
      help: "CPU time.",
      registers: [this.#registry],
      collect() {
        const { user, system } = process.cpuUsage();
        this.reset();
        this.inc((user + system) / 1_000_000);
      },
    });
  }

  #labelOf(mailbox: string): string {
    return this.#labels.has(mailbox) ? mailbox : OTHERS;
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #gauge<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    collect: (gauge: Gauge<Label>) => void = () => {},
  ): Gauge<Label> {
    const gauge: Gauge<Label> = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => collect(gauge),
    });
    return gauge;
  }
}

function labelsOf(mailboxes: readonly ShownMailbox[]): ReadonlySet<string> {
  return new Set(mailboxes.slice(0, MAX_MAILBOXES).map(({ name }) => name));
}
