// @module-tag system
/**
 * I7 nothing silent: each way to stop the work is one trouble of the status that names its cause, lasts as long as the cause,
 * and ends with it. Nothing else is reported, and each transfer is delivered once.
 */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Misbehaviour, Operation } from "../../simulator/scenario.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import { LOSSES } from "../support/disks.ts";
import { accept, refuse } from "../support/receiver.ts";
import { startCluster, startSentinel, type TestRedis } from "../support/redis.ts";
import { MAILBOX, OPERATOR } from "../support/settings.ts";
import { runWays, type Way, type World } from "../support/stops.ts";

type Causes = Pick<Way, "begin" | "lift">;

const DISK_LOGS = ["a disk cannot be used: work that needs it pauses"];

function disk(code: string, words: string) {
  return { trouble: { what: "disk", code, words }, logs: DISK_LOGS, notices: ["disk", "disk over"] };
}

function scripts(begin: string, lift: string): Causes {
  return { begin: ({ disks }) => disks.run(begin), lift: ({ disks }) => disks.run(lift) };
}

/** To what is used now, which may grow meanwhile. */
function shrink(option: string, used: string): string {
  return `for try in $(seq 100); do mount -o remount,${option}=${used} store 2>&- && exit; done; exit 1`;
}

/** Only deliveries to this inbox wait. */
const OWN: Pick<Way, "task" | "inbox" | "queued"> = {
  task: ({ disks }) => ({ mailbox: { inbox: join(disks.folder, "inbox/own") } }),
  inbox: "store/inbox/own",
  queued: "disk",
};

const DISKS: readonly Way[] = [
  ...LOSSES.map(({ because, does, undoes, code, untouched }) => ({
    because,
    ...scripts(does, undoes),
    ...disk(code, untouched.split("/")[0] ?? ""),
    untouched,
  })),
  {
    because: "the inbox of a mailbox is replaced",
    ...OWN,
    ...scripts("mount -t tmpfs tmpfs inbox/own", "umount -l inbox/own"),
    ...disk("DISK_REPLACED", "inbox/own"),
    untouched: "inbox/own",
  },
  {
    because: "the inbox of a mailbox is missing",
    ...OWN,
    ...scripts("mv store/inbox/own store/own", "mv store/own store/inbox/own"),
    ...disk("FOLDER_MISSING", "inbox/own"),
  },
  {
    because: "the disk is full",
    ...scripts(
      shrink("size", "$(df -k --output=used store | tr -dc 0-9)k"),
      "mount -o remount,size=16M store",
    ),
    ...disk("DISK_FULL", "No space is left on the disk"),
  },
  {
    because: "the disk has no free inodes",
    ...scripts(
      shrink("nr_inodes", "$(df --output=iused store | tr -dc 0-9)"),
      "mount -o remount,nr_inodes=2k store",
    ),
    ...disk("DISK_FULL", "No space is left on the disk"),
  },
];

const QUEUE = {
  engines: ["redis"],
  logs: ["the queue does not work: no new work begins until it does"],
  notices: ["queue", "queue over"],
  arrivals: 10,
  // Longer than the quiet time after which a trouble may end.
  holdMs: 14_000,
} as const;

function queue(code: string, words: string) {
  return { ...QUEUE, trouble: { what: "queue", code, words } };
}

function redisConfig(name: string, bad: string, good: string): Causes {
  return {
    begin: ({ redis }) => redis().client.config("SET", name, bad),
    lift: ({ redis }) => redis().client.config("SET", name, good),
  };
}

function acl(bad: readonly string[], good: readonly string[]): Causes {
  const set = (redis: TestRedis, rules: readonly string[]) =>
    redis.client.call("ACL", "SETUSER", "default", ...rules);
  return { begin: ({ redis }) => set(redis(), bad), lift: ({ redis }) => set(redis(), good) };
}

const PAUSED: Causes = {
  begin: ({ redis }) => redis().signal("SIGSTOP"),
  lift: ({ redis }) => redis().signal("SIGCONT"),
};

const REDIS: readonly Way[] = [
  {
    because: "Redis is full",
    ...queue("QUEUE_REFUSED", "it is full"),
    ...redisConfig("maxmemory", "1", "0"),
  },
  {
    because: "Redis is read-only",
    ...queue("QUEUE_REFUSED", "it is read-only"),
    begin: ({ redis }) => redis().client.call("REPLICAOF", "127.0.0.1", "1"),
    lift: ({ redis }) => redis().client.call("REPLICAOF", "NO", "ONE"),
  },
  ...["zadd", "xadd", "bzpopmin", "evalsha"].map((name) => ({
    because: `Redis does not permit ${name}`,
    ...queue("QUEUE_REFUSED", `the command ${name.toUpperCase()}`),
    ...acl([`-${name}`], [`+${name}`]),
  })),
  {
    because: "Redis does not permit its keys",
    ...queue("QUEUE_REFUSED", "may not use all keys"),
    ...acl(["resetkeys", "~other:*"], ["allkeys"]),
  },
  { because: "Redis is stopped", ...queue("QUEUE_UNREACHABLE", "no answer"), ...PAUSED },
  {
    because: "Redis is killed",
    ...queue("QUEUE_UNREACHABLE", "could not be reached"),
    begin: ({ redis }) => redis().kill(),
    lift: ({ redis }) => redis().start(),
  },
  {
    because: "Redis is flushed: it is filled again at once",
    ...QUEUE,
    notices: [],
    logs: [],
    begin: ({ redis }) => redis().client.flushall(),
    lift: () => {},
  },
  {
    because: "the master is killed, and a sentinel promotes its replica",
    ...queue("QUEUE_UNREACHABLE", "could not be reached"),
    holdMs: 1_000,
    inProgress: 4,
    begin: ({ redis }) => redis().kill(),
    lift: () => {},
    async openRedis() {
      const { port, master } = await startSentinel("orders", "secret");
      const sentinels = [`127.0.0.1:${port}`];
      const task = { redis: master.url, queue: { sentinels, sentinelName: "orders" } };
      return { server: master, task: { ...task, sentinelPassword: "secret" } };
    },
  },
  {
    because: "a master of a cluster is stopped",
    ...queue("QUEUE_UNREACHABLE", "no answer"),
    ...PAUSED,
    async openRedis() {
      const nodes = await startCluster();
      const [first] = nodes;
      if (first === undefined) throw new Error("no cluster");
      const slot = Number(await first.client.call("CLUSTER", "KEYSLOT", "{inlet}"));
      const server = nodes[Math.floor(slot / Math.ceil(16_384 / nodes.length))] ?? first;
      const cluster = nodes.map(({ port }) => `127.0.0.1:${port}`);
      return { server, task: { redis: first.url, queue: { cluster, prefix: "{inlet}" } } };
    },
  },
];

const LATE = "something should have happened by now, and has not";
const MAILBOX_LOGS = ["the mailbox cannot be polled"];

function mailbox(code: string, words: string) {
  const trouble = { what: `mailbox ${MAILBOX}`, code, words };
  return { trouble, logs: MAILBOX_LOGS, notices: ["service", "service over"] };
}

function misbehave(on: Operation, does: Misbehaviour): Causes {
  return {
    begin: ({ service }) => service.addFault({ on, times: "always", does }),
    lift: ({ service }) => service.clearFaults(),
  };
}

const SERVICES: readonly Way[] = [
  {
    because: "the service refuses connections",
    ...mailbox("SERVICE_UNREACHABLE", "ECONNREFUSED"),
    begin: ({ service }) => service.close(),
    lift: (world) => world.restartService(),
  },
  {
    because: "the service answers 503",
    ...mailbox("SERVER_FAULT", "503"),
    ...misbehave("received", { kind: "error", status: 503 }),
  },
  {
    because: "the service answers 403",
    ...mailbox("POLICY_REFUSED", "403"),
    ...misbehave("received", { kind: "error", status: 403 }),
  },
  {
    because: "the service answers 401",
    ...mailbox("TOKEN_REFUSED", "401"),
    ...misbehave("received", { kind: "error", status: 401 }),
  },
  {
    because: "the service answers with HTML",
    ...mailbox("BAD_ANSWER", "HTML"),
    ...misbehave("received", { kind: "html" }),
  },
  {
    because: "the service does not answer",
    task: () => ({ timeoutMs: 5_000 }),
    ...mailbox("SERVICE_TIMEOUT", ""),
    ...misbehave("received", { kind: "stall" }),
  },
];

const ORDERS = "inbox/.inlet/orders";

/** Only a broken promise shows them, after a minute. */
const SILENT: readonly Way[] = [
  {
    because: "a poll never ends",
    engines: ["redis"],
    // Without notifications: the end of the connection that lifts the cause may be one too.
    task: () => ({ timeoutMs: 600_000, notify: undefined }),
    ...misbehave("received", { kind: "stall" }),
    lift: (world) => world.restartService(),
    trouble: {
      what: `mailbox ${MAILBOX}`,
      code: "POLL_OVERDUE",
      words: "not been polled successfully since",
    },
    overdue: "poll",
    logs: [LATE, ...MAILBOX_LOGS],
  },
  {
    because: "the folder of orders is read-only",
    async begin({ disks }) {
      const key = { mailbox: MAILBOX, trackingId: "t1", round: 1 };
      await giveOrder(disks.at("store"), { ...key, action: "retry", by: OPERATOR });
      await disks.run(
        `mount --bind store/orders store/orders && mount -o remount,bind,ro store/orders && mount --move store/orders ${ORDERS}`,
      );
    },
    lift: ({ disks }) => disks.run(`mount -o remount,bind,rw ${ORDERS}`),
    trouble: { what: "order retry t1", code: "ORDER_OVERDUE", words: "has not been carried out" },
    isReady: true,
    overdue: "order",
    logs: ["an order cannot be carried out, and is retried", LATE],
    notices: ["stalled", "stalled over"],
  },
];

/** Of the transfer that arrives meanwhile. */
function transfer(code: string, words: string) {
  return { trouble: { what: "transfer t2-0", code, words }, isReady: true };
}

function handoff(words: string) {
  return {
    ...transfer("handoff", words),
    isHandedOver: true,
    logs: ["the hand-off failed, and is retried"],
    notices: ["handoff"],
  };
}

const AFTER: readonly Way[] = [
  {
    because: "the command of the hand-off fails",
    task: ({ disks }) => ({ handoff: { command: ["sh", "-c", `! test -e ${disks.folder}/bad`] } }),
    ...handoff("exit code 1"),
    ...scripts("touch bad", "rm bad"),
  },
  {
    because: "the receiver of the hand-off is away",
    task: ({ consumer }) => ({ handoff: { webhook: consumer.url } }),
    ...handoff("ECONNREFUSED"),
    begin: ({ consumer }) => consumer.stop(),
    lift: ({ consumer }) => consumer.start(),
  },
  {
    because: "the receiver of the hand-off answers 500",
    task: ({ consumer }) => ({ handoff: { webhook: consumer.url } }),
    ...handoff("500"),
    begin: ({ consumer }) => consumer.answerWith(refuse(500)),
    lift: ({ consumer }) => consumer.answerWith(accept),
  },
  {
    because: "the outbox is replaced by a file",
    ...scripts(
      "cd inbox/.inlet && mv outbox outbox.away && touch outbox",
      "cd inbox/.inlet && rm outbox && mv outbox.away outbox",
    ),
    trouble: { what: "handoffs", code: "DISK_REFUSED", words: "outbox" },
    isReady: true,
    logs: ["hand-offs cannot be read or written, and are retried", "waiting"],
    notices: ["handoff", "handoff over"],
  },
];

const TRANSFERS: readonly Way[] = [
  {
    because: "a foreign file has the name of a delivery",
    task: ({ disks }) => ({
      handoff: { done: ".done" },
      // The check runs after the names were claimed.
      check: `case "$INLET_TRACKING_ID" in t2*) touch ${taken(disks.folder)};; esac`,
    }),
    ...transfer("disk", "t2-0.done"),
    notices: ["refused"],
    begin: () => {},
    lift: ({ disks }) => disks.run(`rm ${taken(disks.folder)}`),
    logs: ["stuck, and retried"],
  },
  {
    because: "the file with the password is away",
    task: ({ disks }) => ({ password: { file: join(disks.folder, "password") } }),
    ...scripts("mv password away", "mv away password"),
    ...transfer("retry", "password"),
    notices: ["refused"],
    logs: ["waiting"],
  },
  {
    because: "the command for passwords fails",
    task: ({ disks }) => ({ password: { command: ["cat", join(disks.folder, "password")] } }),
    ...scripts("mv password away", "mv away password"),
    ...transfer("retry", "cat"),
    notices: ["refused"],
    logs: ["waiting"],
  },
  {
    because: "the check gives no verdict",
    task: ({ disks }) => ({ check: `test ! -e ${disks.folder}/bad || exit 7` }),
    ...scripts("touch bad", "rm bad"),
    ...transfer("check", "exit code 7"),
    notices: ["refused"],
    logs: ["waiting"],
  },
];

function taken(folder: string): string {
  return join(folder, "inbox", MAILBOX, "anna@supplier.example/t2-0.done");
}

/** A first message says that a service fails, and the cause begins before the second one, which says that this is over. */
function notify(code: string, words: string, begin: Way["begin"], usesMail = false) {
  return {
    usesMail,
    trouble: { what: "notify", code, words },
    isReady: true,
    logs: [...MAILBOX_LOGS, "a notification could not be sent, and is retried"],
    ...(usesMail ? {} : { notices: ["service", "service over"] }),
    async begin(world: World) {
      const { service, receiver, mail } = world;
      service.addFault({ on: "received", times: "always", does: { kind: "error", status: 503 } });
      if (usesMail) await mail().expectMails(1);
      else await expect.poll(() => receiver.calls).toHaveLength(1);
      await begin(world);
      service.clearFaults();
    },
  };
}

const NOTIFICATIONS: readonly Way[] = [
  {
    because: "the receiver of notifications is away",
    ...notify("NOTIFY_WEBHOOK_FAILED", "ECONNREFUSED", ({ receiver }) => receiver.stop()),
    lift: ({ receiver }) => receiver.start(),
  },
  {
    because: "the receiver of notifications answers 500",
    ...notify("NOTIFY_WEBHOOK_FAILED", "500", ({ receiver }) => receiver.answerWith(refuse(500))),
    lift: ({ receiver }) => receiver.answerWith(accept),
  },
  {
    because: "the mail server is away",
    ...notify("MAIL_UNREACHABLE", "ECONNREFUSED", ({ mail }) => mail().kill(), true),
    lift: ({ mail }) => mail().start(),
  },
  {
    because: "the mail server refuses the recipient",
    ...notify("MAIL_REFUSED", "no such recipient", ({ mail }) => mail().refuseAll(true), true),
    lift: ({ mail }) => mail().refuseAll(false),
  },
];

const GROUPS: Readonly<Record<string, readonly Way[]>> = {
  "of a disk": DISKS,
  "of Redis": REDIS,
  // The longest first.
  "of other parts": [...SILENT, ...SERVICES, ...AFTER, ...TRANSFERS, ...NOTIFICATIONS],
};

describe("I7 nothing silent: the work stops", () => {
  test.each(Object.entries(GROUPS))("because %s", { timeout: 900_000 }, (_name, ways) => runWays(ways));
});
