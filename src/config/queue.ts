/** `queue`, `redis` and `role`: an embedded queue for one process, or a queue on Redis that several processes share. */
import { readPem, readSecretKey, SECRET } from "./credentials.ts";
import { type Draft, formatPath, showValue } from "./draft.ts";
import { QUEUE, type RedisAddress, readAddress } from "./redis-address.ts";
import { group, HOST_PATTERN, PATH, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import type { Settings } from "./settings.ts";
import { DURATION, parseDuration } from "./units.ts";

export const ROLE = {
  type: "string",
  enum: ["all", "worker", "scheduler"],
  default: "all",
  description:
    "What this process does: `worker` downloads transfers, `scheduler` polls for them, `all` does both. Anything but `all` needs a queue on Redis.",
} as const satisfies SchemaNode;

/** Never shown: a password may precede the host. */
const NODE = {
  type: "string",
  title: "a host and a port such as redis1.example.com:6379",
  pattern: `^${HOST_PATTERN}:[1-9][0-9]{0,4}$`,
  writeOnly: true,
} as const satisfies SchemaNode;

const NODES = {
  type: "array",
  title: "a list of at least one host and port such as redis1.example.com:6379",
  items: NODE,
  minItems: 1,
} as const satisfies SchemaNode;

export const REDIS = group(
  {
    username: { ...TEXT, description: "The user to log in as. It wins over the one in `queue`." },
    password: {
      ...SECRET,
      description: "The password to log in with. It wins over the one in `queue`, and need not be escaped.",
    },
    ca: {
      ...PATH,
      description:
        "A PEM file with the certificate authorities to trust beside the usual ones. Needs `rediss://`.",
    },
    sentinels: {
      ...NODES,
      description: "Sentinels that know which server is the master. Excludes `cluster`.",
    },
    sentinelName: {
      ...TEXT,
      default: "mymaster",
      description: "The name by which the sentinels know the master.",
    },
    sentinelPassword: { ...SECRET, description: "The password of the sentinels, where they have one." },
    cluster: {
      ...NODES,
      description: "Some nodes of a Redis cluster, which name the others. Excludes `sentinels`.",
    },
    prefix: {
      type: "string",
      title: "a name of at most 100 letters, digits, dots, - and _",
      pattern: "^[A-Za-z0-9._-]{1,100}$",
      default: "inlet",
      description:
        "What the names of all keys in Redis begin with. Processes with the same one share their work; in a cluster it is put in braces, which keeps the keys on one node.",
    },
    lock: {
      ...DURATION,
      default: "30s",
      description:
        "After this time without a heartbeat another process may take over a transfer. From 2s to 10m.",
    },
  },
  "How to reach the Redis that `queue` names, and how it is shared.",
);

type RawRedis = Written<typeof REDIS>;

interface RawQueue {
  readonly queue?: string;
  readonly redis?: RawRedis;
  readonly role?: Written<typeof ROLE>;
}

const KEYS = REDIS.properties;
const MIN_LOCK_MS = 2_000;
const MAX_LOCK_MS = 600_000;

/** Problems and warnings go to the draft; the result is usable only without a problem. */
export async function readQueue(raw: RawQueue, draft: Draft): Promise<Settings["queue"]> {
  const { queue = QUEUE.default, redis = {}, role = ROLE.default } = raw;
  // Without a usable `queue`, nothing can be said about the other keys.
  if (draft.problems.has(["queue"])) return "embedded";
  if (queue === "embedded") {
    checkEmbedded(redis, role, draft);
    return "embedded";
  }
  const address = readAddress(queue, draft);
  const passwordInUrl =
    address?.password === undefined ? undefined : await readSecretKey(address.password, ["queue"], draft);
  const secret = async (key: "password" | "sentinelPassword") => {
    const given = redis[key];
    return given === undefined ? undefined : readSecretKey(given, ["redis", key], draft);
  };
  const settings = {
    username: redis.username ?? address?.username,
    password: (await secret("password")) ?? passwordInUrl,
    ca: await readPem(redis.ca === undefined ? undefined : { value: redis.ca, path: ["redis", "ca"] }, draft),
    sentinels: readNodes("sentinels", redis, draft),
    sentinelName: redis.sentinelName ?? KEYS.sentinelName.default,
    sentinelPassword: await secret("sentinelPassword"),
    cluster: readNodes("cluster", redis, draft),
    prefix: prefixOf(redis),
    lockMs: readLock(redis.lock ?? KEYS.lock.default, draft),
    role,
  };
  checkOneWay(redis, draft);
  if (address === undefined) return "embedded";
  checkAddress(address, redis, draft);
  return { url: address.url, ...settings };
}

/** An embedded queue has one process, which does all the work and uses no Redis. */
function checkEmbedded(redis: RawRedis, role: Written<typeof ROLE>, draft: Draft): void {
  if (role !== "all") {
    const undone = role === "worker" ? "poll for" : "download";
    draft.problems.add(
      ["role"],
      `${showValue(role)} needs a queue on Redis: with the embedded one no process would ${undone} transfers`,
    );
  }
  warnOfUnused(Object.keys(KEYS) as (keyof RawRedis)[], "queue is embedded", redis, draft);
}

/** Sentinels and a cluster exclude each other. */
function checkOneWay(redis: RawRedis, draft: Draft): void {
  if (redis.sentinels !== undefined && redis.cluster !== undefined) {
    draft.problems.add(["redis", "cluster"], "excludes redis.sentinels: give one of the two");
  }
  if (redis.sentinels === undefined) {
    warnOfUnused(["sentinelName", "sentinelPassword"], "redis.sentinels is not given", redis, draft);
  }
}

/** Checks the address against the keys of `redis`. */
function checkAddress({ url, shown }: RedisAddress, redis: RawRedis, draft: Draft): void {
  const isServerNamed = redis.sentinels !== undefined || redis.cluster !== undefined;
  if (url.hostname === "" && !isServerNamed) {
    draft.problems.add(
      ["queue"],
      `${shown} names no host: write one behind the //, or give redis.sentinels or redis.cluster`,
    );
  }
  const database = Number(url.pathname.slice(1));
  if (redis.cluster !== undefined && database !== 0) {
    draft.problems.add(["queue"], `${shown} names database ${database}, but a cluster has only database 0`);
  }
  if (url.protocol === "redis:") {
    const why = "queue begins with redis://, which is without TLS: rediss:// is with it";
    warnOfUnused(["ca"], why, redis, draft);
  }
}

function warnOfUnused(
  keys: readonly (keyof RawRedis)[],
  why: string,
  redis: RawRedis,
  { warnings }: Draft,
): void {
  const unused = keys.filter((key) => redis[key] !== undefined);
  if (unused.length === 0) return;
  warnings.push(`${unused.map((key) => formatPath(["redis", key])).join(", ")}: not used, because ${why}.`);
}

function readNodes(key: "sentinels" | "cluster", redis: RawRedis, { problems }: Draft): string[] {
  const nodes = redis[key] ?? [];
  for (const [at, node] of nodes.entries()) {
    if (node === undefined || URL.canParse(`redis://${node}`)) continue;
    problems.add(["redis", key, at], `must be ${KEYS[key].items.title}`);
  }
  return nodes.filter((node) => node !== undefined);
}

/** A cluster keeps keys with the same text in braces on one node, which the queue's scripts need. */
function prefixOf({ prefix = KEYS.prefix.default, cluster }: RawRedis): string {
  return cluster === undefined ? prefix : `{${prefix}}`;
}

function readLock(text: string, { problems }: Draft): number {
  const lockMs = parseDuration(text) ?? Number.POSITIVE_INFINITY;
  if (lockMs < MIN_LOCK_MS || lockMs > MAX_LOCK_MS) {
    problems.add(["redis", "lock"], `${showValue(text)} is not from 2s to 10m`);
  }
  return lockMs;
}
