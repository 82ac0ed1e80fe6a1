// @module-tag system
/**
 * I7 nothing silent: each way in which a real disk or Redis stops the work is one trouble of the status that names its cause,
 * lasts as long as the cause, and ends with it. Nothing else is reported, and each transfer is delivered once. Services,
 * receivers and programs that stop it are in test/unit/world/silence.test.ts.
 */
import { join } from "node:path";
import { describe, test } from "vitest";
import { giveOrder } from "../../src/ledger/orders.ts";
import { FULL, LOSSES } from "../support/disks.ts";
import { REDIS_CAUSES, startCluster, startSentinel } from "../support/redis.ts";
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
  ...FULL.map(({ because, does, undoes, code }) => ({
    because,
    ...scripts(does, undoes),
    ...disk(code, "No space is left on the disk"),
  })),
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

const REDIS: readonly Way[] = [
  ...REDIS_CAUSES.map(({ because, code, words, begin, lift }) => ({
    because,
    ...queue(code, words),
    begin: ({ redis }: World) => begin(redis()),
    lift: ({ redis }: World) => lift(redis()),
  })),
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
    begin: ({ redis }) => redis().signal("SIGSTOP"),
    lift: ({ redis }) => redis().signal("SIGCONT"),
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

const ORDERS = "inbox/.inlet/orders";

const FILES: readonly Way[] = [
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
    logs: [
      "an order cannot be carried out, and is retried",
      "something should have happened by now, and has not",
    ],
    notices: ["stalled", "stalled over"],
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
  {
    because: "the file with the password is away",
    task: ({ disks }) => ({ password: { file: join(disks.folder, "password") } }),
    ...scripts("mv password away", "mv away password"),
    trouble: { what: "transfer t2-0", code: "retry", words: "password" },
    isReady: true,
    notices: ["refused"],
    logs: ["waiting"],
  },
];

const GROUPS: Readonly<Record<string, readonly Way[]>> = {
  "of a disk": DISKS,
  "of Redis": REDIS,
  "of single folders and files": FILES,
};

describe("I7 nothing silent: the work stops", () => {
  test.each(Object.entries(GROUPS))("because %s", { timeout: 900_000 }, (_name, ways) => runWays(ways));
});
