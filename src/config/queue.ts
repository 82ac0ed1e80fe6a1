/** `queue`, `redis` and `role`: an embedded queue for one process, or a queue on Redis that several processes share. */
import { CERTIFICATES, SECRET } from "./credentials.ts";
import { formatPath, type Spot, showValue } from "./draft.ts";
import { readKeys } from "./read.ts";
import { group, HOST_PATTERN, key, list, READ, type Read, type SchemaNode, TEXT } from "./schema-nodes.ts";
import { DURATION, parseDuration } from "./units.ts";

const QUEUE_TITLE = "embedded, or the address of a Redis such as redis://redis.example.com:6379/0";

export const QUEUE = key(
  { ...TEXT, title: QUEUE_TITLE, default: "embedded", writeOnly: true, [READ]: readAddress },
  "Where jobs wait. `embedded`: in the process, for one process on one machine. `redis://USER:PASSWORD@HOST:PORT/DATABASE`: in that Redis, which several processes share; only the host is required, and `rediss://` uses TLS.",
);

export const ROLE = key(
  { type: "string", enum: ["all", "worker", "scheduler"], default: "all" },
  "The role of this process: `worker` downloads transfers, `scheduler` polls the mailboxes, `all` does both. `worker` and `scheduler` need a queue on Redis.",
);

const NODE_TITLE = "a host and a port such as redis1.example.com:6379";

/** Never shown: by mistake, a password may precede the host. */
const NODE = {
  type: "string",
  title: NODE_TITLE,
  pattern: `^${HOST_PATTERN}:[1-9][0-9]{0,4}$`,
  writeOnly: true,
  [READ]: readNode,
} as const satisfies SchemaNode;

const NODES = {
  ...list("a list of at least one host and port such as redis1.example.com:6379", NODE),
  minItems: 1,
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
    prefix: key(
      {
        type: "string",
        title: "a name of at most 100 letters, digits, dots, - and _",
        pattern: "^[A-Za-z0-9._-]{1,100}$",
        default: "inlet",
      },
      "The prefix of all keys in Redis. Processes with the same prefix share their work.",
    ),
    lock: key(
      { ...DURATION, default: "30s", [READ]: readLock },
      "After this time without a heartbeat, another process takes over the transfers of a process. From 2s to 10m.",
    ),
  },
  "How to reach the Redis in `queue`, and how to share it.",
);

interface RedisAddress {
  /** Scheme, host, port and database alone. */
  readonly url: URL;
  readonly username: string | undefined;
  readonly password: string | undefined;
}

const HOST = new RegExp(`^(${HOST_PATTERN})?$`);
const DATABASE = /^\/?(0|[1-9]\d{0,5})?$/;

/** For an address with an @ in a later part: the part before it belongs to a password with an unescaped character. */
const ESCAPING =
  "put a password with special characters into redis.password, or escape each of them with % and two digits, such as %2F";

const MIN_LOCK_MS = 2_000;
const MAX_LOCK_MS = 600_000;

/**
 * A queue that several processes share. `url` has no user or password: its scheme decides on TLS, its path is the database.
 * Host and port are used only without sentinels and without a cluster, which exclude each other.
 */
export type RedisQueueSettings = Exclude<Awaited<ReturnType<typeof readQueue>>, "embedded">;

type Queue = { readonly queue: Read<typeof QUEUE>; readonly role: Read<typeof ROLE> };

/** The keys of `redis` are read only for a queue on Redis. The result is usable only without a problem. */
export async function readQueue({ queue: address, role }: Queue, at: Spot) {
  const redis = at.at("redis");
  // The address was refused. Its default takes its place, and must not lead to problems of the other keys.
  if (!at.isSet("queue") && at.isRefused("queue")) return "embedded";
  if (address === "embedded") {
    if (role !== "all") {
      const undone = role === "worker" ? "poll for" : "download";
      const why = `needs a queue on Redis: with the embedded one no process would ${undone} transfers`;
      at.refuse(`${showValue(role)} ${why}`, "role");
    }
    warnOfUnused(Object.keys(REDIS.properties), "queue is embedded", redis);
    return address;
  }
  const passwordInUrl = address?.password && (await SECRET[READ](address.password, at.at("queue")));
  const read = await readKeys(REDIS.properties, redis);
  const { sentinels = [], cluster = [], lock: lockMs, ...others } = read;
  const settings = {
    ...others,
    username: read.username ?? address?.username,
    password: read.password ?? (passwordInUrl || undefined),
    sentinels,
    cluster,
    // The braces keep all keys on one node, which the queue's scripts need.
    prefix: redis.isSet("cluster") ? `{${read.prefix}}` : read.prefix,
    lockMs,
    role,
  };
  checkServers(address, redis, at);
  return address === undefined ? "embedded" : { url: address.url, ...settings };
}

function checkServers(address: RedisAddress | undefined, redis: Spot, at: Spot): void {
  const [hasSentinels, hasCluster] = [redis.isSet("sentinels"), redis.isSet("cluster")];
  if (hasSentinels && hasCluster) {
    redis.refuse("cannot be used with redis.sentinels: set only one of the two", "cluster");
  }
  if (!hasSentinels) {
    warnOfUnused(["sentinelName", "sentinelPassword"], "redis.sentinels is not set", redis);
  }
  if (address === undefined) return;
  const { url } = address;
  if (url.hostname === "" && !hasSentinels && !hasCluster) {
    const remedy = "write one after the //, or set redis.sentinels or redis.cluster";
    at.refuse(`has no host: ${remedy}`, "queue");
  }
  const database = Number(url.pathname.slice(1));
  if (hasCluster && database !== 0) {
    at.refuse(`names database ${database}, but a cluster has only database 0`, "queue");
  }
  if (url.protocol === "redis:") {
    warnOfUnused(["ca"], "queue uses redis:// without TLS, not rediss://", redis);
  }
}

function warnOfUnused(keys: readonly string[], why: string, redis: Spot): void {
  const unused = keys.filter((name) => redis.isSet(name)).map((name) => formatPath(["redis", name]));
  if (unused.length > 0) redis.draft.warnings.push(`${unused.join(", ")}: not used, because ${why}.`);
}

function readNode(node: string, at: Spot): string {
  if (!URL.canParse(`redis://${node}`)) at.refuse(`must be ${NODE_TITLE}`);
  return node;
}

function readLock(text: string, at: Spot): number {
  const lockMs = parseDuration(text) ?? Number.POSITIVE_INFINITY;
  const isAllowed = lockMs >= MIN_LOCK_MS && lockMs <= MAX_LOCK_MS;
  if (!isAllowed) at.refuse(`${showValue(text)} is not from 2s to 10m`);
  return lockMs;
}

/** Messages do not quote the address, which may hold a password. `undefined` for a wrong one. */
function readAddress(text: string, at: Spot): "embedded" | RedisAddress | undefined {
  if (text === "embedded") return text;
  const url = URL.parse(text);
  const { pathname = "", search = "", hash = "" } = url ?? {};
  const isPasswordCut = /@/.test(url === null ? text : pathname + search + hash);
  const refuse = (message: string) => at.refuse(isPasswordCut ? `${message}: ${ESCAPING}` : message);
  if (url === null || !/^rediss?:\/\//i.test(text.trim()) || !HOST.test(url.hostname) || url.port === "0") {
    return refuse(`must be ${QUEUE_TITLE}`);
  }
  if (/[?#]/.test(text)) {
    return refuse("must not contain ? or #: select a database with a path such as /3");
  }
  if (!DATABASE.test(pathname)) return refuse("must end with a database such as /3, or have no path");
  const [username, password] = [decode(url.username), decode(url.password)];
  if (username === undefined || password === undefined) {
    return at.refuse(`contains a % that is not followed by the code of a character: ${ESCAPING}`);
  }
  url.username = "";
  url.password = "";
  return { url, username: username || undefined, password: password || undefined };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
