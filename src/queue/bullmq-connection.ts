/** Connections to the Redis that holds the queue, and what has to be true of it. */
import { type ConnectionOptions, rootCertificates } from "node:tls";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import { Fault } from "../base/faults.ts";
import type { Outage } from "../base/outage.ts";

export interface RedisSettings {
  /** Where the queue says so; missing where nodes or sentinels are named instead. */
  readonly url: URL | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM text of the authority that signed Redis's certificate. */
  readonly ca: string | undefined;
  /** `host:port` of each, and the name by which they know the master. */
  readonly sentinels: readonly string[];
  readonly sentinelName: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** `host:port` of some nodes of a cluster; empty for a single server. */
  readonly cluster: readonly string[];
  /** Begins every key. */
  readonly prefix: string;
}

export type RedisClient = Redis | Cluster;

const LEAST_VERSION = [6, 2] as const;
const CONNECT_TIMEOUT_MS = 5_000;
const LONGEST_PAUSE_MS = 5_000;

/** BullMQ waits for the end of its connections, which a plain one that pauses between two attempts never reports. */
class EndingRedis extends Redis {
  override disconnect(reconnect = false): void {
    const isPausing = this.status === "reconnecting" && !reconnect;
    if (isPausing) this.connect().catch(() => {});
    super.disconnect(reconnect);
  }

  /** The type that it should have says how replies are mapped, which nobody asks for here. */
  override duplicate(override: Partial<RedisOptions> = {}): never {
    const options: RedisOptions = Object.assign({}, this.options, override);
    return new EndingRedis({ ...options, replyMapping: "legacy" }) as never;
  }
}

/** Never throws; connects by itself, again and again. */
export function connect(settings: RedisSettings): RedisClient {
  const retryStrategy = (times: number) => Math.min(100 * 2 ** Math.min(times, 10), LONGEST_PAUSE_MS);
  const options = {
    // BullMQ demands it: commands wait for Redis to come back.
    maxRetriesPerRequest: null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    ...credentials(settings),
    ...security(settings),
  };
  if (settings.cluster.length > 0) {
    return new Cluster(settings.cluster.map(parseNode), {
      redisOptions: options,
      clusterRetryStrategy: retryStrategy,
    });
  }
  if (settings.sentinels.length > 0) {
    return new EndingRedis({
      ...options,
      retryStrategy,
      sentinels: settings.sentinels.map(parseNode),
      name: settings.sentinelName ?? "mymaster",
      ...(settings.sentinelPassword === undefined ? {} : { sentinelPassword: settings.sentinelPassword }),
      db: databaseOf(settings.url),
      // Without these, sentinels and what they point to would be spoken to in plain text.
      ...(options.tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: options.tls }),
    });
  }
  const { hostname, port } = settings.url ?? new URL("redis://127.0.0.1");
  return new EndingRedis({
    ...options,
    retryStrategy,
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || 6379),
    db: databaseOf(settings.url),
  });
}

/** Tells when the connection is lost, and when it is back, until it is ended on purpose. */
export function reportOutages(client: RedisClient, place: string, outage: Outage): void {
  const lost = (cause?: Error) => {
    if (client.status === "end") return;
    const detail = cause === undefined ? place : `${place} (${describe(cause)})`;
    outage.add(
      "redis",
      new Fault("QUEUE_UNREACHABLE", { detail, ...(cause === undefined ? {} : { cause }) }),
    );
  };
  client.on("error", lost);
  client.on("reconnecting", () => lost());
  client.on("ready", () => outage.clear("redis"));
}

/** Waits until commands are answered. `patient`: also through failures; else the first one is thrown. */
export async function untilReady(
  client: RedisClient,
  place: string,
  patient: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (client.status === "ready") return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onError = (cause: Error) => {
    if (!patient) reject(new Fault("QUEUE_UNREACHABLE", { detail: `${place} (${describe(cause)})`, cause }));
  };
  const onStop = () => reject(new Fault("STOPPED"));
  client.once("ready", resolve).on("error", onError);
  signal.addEventListener("abort", onStop, { once: true });
  try {
    if (signal.aborted) onStop();
    await promise;
  } finally {
    client.off("ready", resolve).off("error", onError);
    signal.removeEventListener("abort", onStop);
  }
}

export interface RedisFacts {
  readonly version: string;
  /** Anything but `noeviction` lets Redis forget jobs. */
  readonly evictionPolicy: string;
}

/** Of a cluster, the node that would forget jobs, if there is one. Throws `QUEUE_UNSUITABLE` for a server that is too old. */
export async function inspectRedis(client: RedisClient): Promise<RedisFacts> {
  const nodes = client instanceof Cluster ? client.nodes("master") : [client];
  const facts = (await Promise.all(nodes.map((node) => node.info()))).map(readFacts);
  const unsuitable = facts.find(({ version }) => isTooOld(version));
  if (unsuitable !== undefined) {
    throw new Fault("QUEUE_UNSUITABLE", { detail: `version ${unsuitable.version || "unknown"}` });
  }
  const [first] = facts.toSorted((a, b) => Number(isLasting(a)) - Number(isLasting(b)));
  return first ?? { version: "", evictionPolicy: "" };
}

function readFacts(info: string): RedisFacts {
  const read = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
  return {
    version: read("valkey_version") || read("redis_version"),
    evictionPolicy: read("maxmemory_policy"),
  };
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [leastMajor, leastMinor] = LEAST_VERSION;
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}

/** Keeps what it was told. */
function isLasting({ evictionPolicy }: RedisFacts): boolean {
  return evictionPolicy === "noeviction";
}

function credentials({ url, username, password }: RedisSettings): { username?: string; password?: string } {
  const user = username ?? decodeURIComponent(url?.username ?? "");
  const secret = password ?? decodeURIComponent(url?.password ?? "");
  return { ...(user === "" ? {} : { username: user }), ...(secret === "" ? {} : { password: secret }) };
}

function security({ url, ca }: RedisSettings): { tls?: ConnectionOptions } {
  if (url?.protocol !== "rediss:") return {};
  return { tls: ca === undefined ? {} : { ca: [...rootCertificates, ca] } };
}

function databaseOf(url: URL | undefined): number {
  return Number(url?.pathname.slice(1) || 0);
}

function parseNode(node: string): { host: string; port: number } {
  const { hostname, port } = new URL(`redis://${node}`);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 6379) };
}

/** Messages of ioredis may repeat what was sent, a password among it: only the code is shown. */
function describe(cause: Error): string {
  return "code" in cause ? String(cause.code) : (/^[A-Z]+/.exec(cause.message)?.[0] ?? cause.name);
}
