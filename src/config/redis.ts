/** What runs the work: this process alone, or a queue on Redis that several processes share. */
import type { SecretSource } from "../base/secret.ts";
import type { Draft } from "./draft.ts";
import { parseSecret } from "./parse-secret.ts";
import { readPem } from "./pem.ts";
import { formatPath, showValue } from "./problems.ts";
import type { RawRedis } from "./raw.ts";
import { HOST_PATTERN, QUEUE, REDIS, ROLE } from "./schema-redis.ts";
import type { Settings } from "./settings.ts";
import { parseDuration } from "./units.ts";

const KEYS = REDIS.properties;
const SHORTEST_LOCK_MS = 2_000;
const LONGEST_LOCK_MS = 600_000;

/** Problems and warnings go to the draft; where the queue has a problem, the result is of no use. */
export async function parseQueue(draft: Draft): Promise<Settings["queue"]> {
  const { queue = QUEUE.default, redis = {}, role = ROLE.default } = draft.raw;
  // What was meant cannot be told, so nothing can be said about the rest.
  if (draft.problems.has(["queue"])) return "embedded";
  if (queue === "embedded") {
    checkAlone(draft);
    return "embedded";
  }
  const address = parseAddress(queue, draft);
  const passwordInUrl = await parsePasswordOf(address, draft);
  const settings = {
    username: redis.username ?? address?.username,
    password: (await parseSecretKey("password", draft)) ?? passwordInUrl,
    ca: await readPem(redis.ca === undefined ? undefined : { value: redis.ca, path: ["redis", "ca"] }, draft),
    sentinels: parseNodes("sentinels", draft),
    sentinelName: redis.sentinelName ?? KEYS.sentinelName.default,
    sentinelPassword: await parseSecretKey("sentinelPassword", draft),
    cluster: parseNodes("cluster", draft),
    prefix: parsePrefix(redis),
    lockMs: parseLock(draft),
    role,
  };
  checkWay(draft);
  if (address === undefined) return "embedded";
  checkAddress(address, draft);
  return { url: address.url, ...settings };
}

/** The process does everything itself: half of it would be for nobody, and Redis has no part in it. */
function checkAlone(draft: Draft): void {
  const { role = ROLE.default } = draft.raw;
  if (role !== "all") {
    const undone = role === "worker" ? "look for" : "collect";
    draft.problems.add(
      ["role"],
      `${showValue(role)} needs a queue on Redis: with the embedded one nobody would ${undone} transfers`,
    );
  }
  warnOfUnused(Object.keys(KEYS) as (keyof RawRedis)[], "queue is embedded", draft);
}

/** A Redis is found in one way. */
function checkWay(draft: Draft): void {
  const { redis = {} } = draft.raw;
  if (redis.sentinels !== undefined && redis.cluster !== undefined) {
    draft.problems.add(["redis", "cluster"], "cannot stand beside redis.sentinels: give one of the two");
  }
  if (redis.sentinels === undefined) {
    warnOfUnused(["sentinelName", "sentinelPassword"], "redis.sentinels is not given", draft);
  }
}

/** What the keys beside it ask of the address. */
function checkAddress({ url, shown }: Address, draft: Draft): void {
  const { redis = {} } = draft.raw;
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
    warnOfUnused(["ca"], "queue begins with redis://, which is without TLS: rediss:// is with it", draft);
  }
}

function warnOfUnused(keys: readonly (keyof RawRedis)[], why: string, { raw, warnings }: Draft): void {
  const unused = keys.filter((key) => raw.redis?.[key] !== undefined);
  if (unused.length === 0) return;
  warnings.push(`${unused.map((key) => formatPath(["redis", key])).join(", ")}: not used, because ${why}.`);
}

interface Address {
  /** Scheme, host, port and database alone. */
  readonly url: URL;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** For messages. */
  readonly shown: string;
}

const HOST = new RegExp(`^(${HOST_PATTERN})?$`);
const DATABASE = /^\/?(0|[1-9]\d{0,5})?$/;

/** An unescaped character of a password makes the rest of it look like something else. */
const ESCAPING =
  "a password that holds more than letters and digits is best given as redis.password, or each other character is written as % and two digits, such as %2F";

function parseAddress(text: string, { problems }: Draft): Address | undefined {
  const shown = showAddress(text);
  const refuse = (message: string, hint: string = ""): undefined => {
    const hints = [hint, shown === undefined && text.includes("@") ? ESCAPING : ""].filter(Boolean);
    problems.add(["queue"], [message, ...hints].join(": "));
  };
  const url = URL.parse(text);
  const isRedis = url !== null && /^rediss?:\/\//i.test(text.trim());
  if (!isRedis || !HOST.test(url.hostname) || url.port === "0") {
    return refuse(shown === undefined ? `must be ${QUEUE.title}` : `${shown} is not ${QUEUE.title}`);
  }
  if (/[?#]/.test(text)) return refuse("must hold no ? or #", "a database is named by a path such as /3");
  if (!DATABASE.test(url.pathname)) {
    return refuse(
      `${shown === undefined ? "" : `${shown} `}must end in the number of a database such as /3, or in no path`,
    );
  }
  const [username, password] = [decode(url.username), decode(url.password)];
  if (username === undefined || password === undefined) {
    return refuse("holds a % that stands for no character", ESCAPING);
  }
  url.username = "";
  url.password = "";
  return {
    url,
    username: username || undefined,
    password: password || undefined,
    shown: shown ?? showValue(url.href),
  };
}

/** Without user and password; `undefined` where it cannot be told for sure what belongs to them. */
function showAddress(text: string): string | undefined {
  const [, scheme, user, rest] = /^\s*([a-z][a-z0-9+.-]*:\/\/)([^@/?#]*@)?([^@?#]*)$/i.exec(text) ?? [];
  if (scheme === undefined || rest === undefined || !URL.canParse(text)) return undefined;
  return showValue(`${scheme}${user === undefined ? "" : "[secret]@"}${rest}`);
}

/** `undefined` for what was not escaped rightly. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

async function parsePasswordOf(
  address: Address | undefined,
  draft: Draft,
): Promise<SecretSource | undefined> {
  return address?.password === undefined ? undefined : parseSecret(address.password, ["queue"], draft);
}

async function parseSecretKey(
  key: "password" | "sentinelPassword",
  draft: Draft,
): Promise<SecretSource | undefined> {
  const given = draft.raw.redis?.[key];
  return given === undefined ? undefined : parseSecret(given, ["redis", key], draft);
}

function parseNodes(key: "sentinels" | "cluster", draft: Draft): string[] {
  const nodes = draft.raw.redis?.[key] ?? [];
  for (const [at, node] of nodes.entries()) {
    if (node === undefined || URL.canParse(`redis://${node}`)) continue;
    draft.problems.add(["redis", key, at], `must be ${KEYS[key].items.title}`);
  }
  return nodes.filter((node) => node !== undefined);
}

/** Keys with the same text in braces are kept on the same node of a cluster, which the queue's scripts need. */
function parsePrefix({ prefix = KEYS.prefix.default, cluster }: RawRedis): string {
  return cluster === undefined ? prefix : `{${prefix}}`;
}

function parseLock(draft: Draft): number {
  const given = draft.raw.redis?.lock ?? KEYS.lock.default;
  const lockMs = parseDuration(given) ?? Number.POSITIVE_INFINITY;
  if (lockMs < SHORTEST_LOCK_MS || lockMs > LONGEST_LOCK_MS) {
    draft.problems.add(["redis", "lock"], `${showValue(given)} is not from 2s to 10m`);
  }
  return lockMs;
}
