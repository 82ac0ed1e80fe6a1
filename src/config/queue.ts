/** `queue`, `redis` and `role`: an embedded queue for one process, or a queue on Redis that several processes share. */
import { CERTIFICATES, SECRET } from "./credentials.ts";
import { type Draft, formatPath, type KeyPath, showValue } from "./draft.ts";
import { readKeys } from "./layers.ts";
import { QUEUE, type RedisAddress, readAddress } from "./redis-address.ts";
import { group, HOST_PATTERN, key, READ, type SchemaNode, TEXT, type Written } from "./schema-nodes.ts";
import { DURATION, parseDuration } from "./units.ts";

export const ROLE = key(
  { type: "string", enum: ["all", "worker", "scheduler"], default: "all" },
  "The role of this process: `worker` downloads transfers, `scheduler` polls the mailboxes, `all` does both. `worker` and `scheduler` need a queue on Redis.",
);

/** Never shown: by mistake, a password may precede the host. */
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
  [READ]: readNodes,
} as const satisfies SchemaNode;

export const REDIS = group(
  {
    username: key(TEXT, "The user to log in as, instead of the one in `queue`."),
    password: key(
      SECRET,
      "The password to log in with, instead of the one in `queue`. It is not URL-encoded.",
    ),
    ca: key(
      CERTIFICATES,
      "A PEM file with additional certificate authorities to trust. Requires `rediss://`.",
    ),
    sentinels: key(NODES, "The sentinels that know the master. Not together with `cluster`."),
    sentinelName: key({ ...TEXT, default: "mymaster" }, "The name of the master at the sentinels."),
    sentinelPassword: key(SECRET, "The password of the sentinels, if they have one."),
    cluster: key(
      NODES,
      "Some nodes of a Redis cluster; Inlet finds the others through them. Not together with `sentinels`.",
    ),
    prefix: {
      type: "string",
      title: "a name of at most 100 letters, digits, dots, - and _",
      pattern: "^[A-Za-z0-9._-]{1,100}$",
      default: "inlet",
      description:
        "The prefix of all keys in Redis. Processes with the same prefix share their work. In a cluster it is put in braces, which keeps all keys on one node.",
    },
    lock: key(
      { ...DURATION, default: "30s", [READ]: readLock },
      "After this time without a heartbeat of a process, another process may take over its transfers. From 2s to 10m.",
    ),
  },
  "How to reach the Redis in `queue`, and how to share it.",
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

/**
 * A queue that several processes share. `url` has no user or password: its scheme decides on TLS, its path is the database.
 * Host and port are used only without sentinels and without a cluster, which exclude each other.
 */
export type RedisQueueSettings = Exclude<Awaited<ReturnType<typeof readQueue>>, "embedded">;

/** Problems and warnings go to the draft; the result is usable only without a problem. */
export async function readQueue(raw: RawQueue, draft: Draft) {
  const { queue = QUEUE.default, redis = {}, role = ROLE.default } = raw;
  // Without a usable `queue`, the other keys cannot be checked.
  if (draft.problems.has(["queue"])) return "embedded" as const;
  if (queue === "embedded") {
    checkEmbedded(redis, role, draft);
    return "embedded" as const;
  }
  const address = readAddress(queue, draft);
  const passwordInUrl = address?.password && (await SECRET[READ](address.password, ["queue"], draft));
  const read = await readKeys(KEYS, [{ raw: redis, path: ["redis"] }], draft);
  const { sentinels = [], cluster = [], lock, ...others } = read;
  const settings = {
    ...others,
    username: read.username ?? address?.username,
    password: read.password ?? (passwordInUrl || undefined),
    sentinels,
    cluster,
    // The braces keep all keys on one node, which the queue's scripts need.
    prefix: redis.cluster === undefined ? read.prefix : `{${read.prefix}}`,
    lockMs: lock,
    role,
  };
  checkExclusive(redis, draft);
  if (address === undefined) return "embedded" as const;
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
function checkExclusive(redis: RawRedis, draft: Draft): void {
  if (redis.sentinels !== undefined && redis.cluster !== undefined) {
    draft.problems.add(["redis", "cluster"], "cannot be used with redis.sentinels: set only one of the two");
  }
  if (redis.sentinels === undefined) {
    warnOfUnused(["sentinelName", "sentinelPassword"], "redis.sentinels is not set", redis, draft);
  }
}

/** Checks the address against the keys of `redis`. */
function checkAddress({ url, shown }: RedisAddress, redis: RawRedis, draft: Draft): void {
  const isServerNamed = redis.sentinels !== undefined || redis.cluster !== undefined;
  if (url.hostname === "" && !isServerNamed) {
    draft.problems.add(
      ["queue"],
      `${shown} has no host: write one after the //, or set redis.sentinels or redis.cluster`,
    );
  }
  const database = Number(url.pathname.slice(1));
  if (redis.cluster !== undefined && database !== 0) {
    draft.problems.add(["queue"], `${shown} names database ${database}, but a cluster has only database 0`);
  }
  if (url.protocol === "redis:") {
    const why = "queue uses redis:// without TLS, not rediss://";
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

function readNodes(
  nodes: readonly (string | undefined)[],
  path: KeyPath,
  { problems }: Draft,
): readonly string[] {
  for (const [at, node] of nodes.entries()) {
    if (node === undefined || URL.canParse(`redis://${node}`)) continue;
    problems.add([...path, at], `must be ${NODE.title}`);
  }
  return nodes.filter((node) => node !== undefined);
}

function readLock(text: string, path: KeyPath, { problems }: Draft): number {
  const lockMs = parseDuration(text) ?? Number.POSITIVE_INFINITY;
  if (lockMs < MIN_LOCK_MS || lockMs > MAX_LOCK_MS) {
    problems.add(path, `${showValue(text)} is not from 2s to 10m`);
  }
  return lockMs;
}
