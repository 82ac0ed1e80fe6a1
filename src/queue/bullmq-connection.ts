/** Connections to the Redis that holds the queue, and checks of its version and settings. */

import { once } from "node:events";
import type { ConnectionOptions } from "node:tls";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import { REDIS_ANSWER_BYTES } from "../base/bounds.ts";
import { unlessStopped } from "../base/deadline.ts";
import { asFault, Fault } from "../base/faults.ts";
import { authoritiesWith } from "../base/trust.ts";
import { ANSWER_TOO_LARGE, faultOfRedis, isReadOnly } from "./bullmq-errors.ts";

export interface RedisSettings {
  /** Host and port are not used with sentinels or a cluster. */
  readonly url: URL | undefined;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM text of the authority that signed Redis's certificate. */
  readonly ca: string | undefined;
  /** `host:port` of each. */
  readonly sentinels: readonly string[];
  /** The sentinels' name for the master. */
  readonly sentinelName: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** `host:port` of some nodes of a cluster; empty for a single server. */
  readonly cluster: readonly string[];
  /** The prefix of every key. */
  readonly prefix: string;
}

export type RedisClient = Redis | Cluster;

const MIN_VERSION = [6, 2] as const;
const CONNECT_TIMEOUT_MS = 5_000;
const LONGEST_PAUSE_MS = 5_000;

/** Refuses the commands of a connection, and connects again, once an answer exceeds the bound. */
function boundAnswers(redis: Redis): Redis {
  let bytes = 0;
  const answered = () => {
    bytes = 0;
  };
  const send = redis.sendCommand.bind(redis);
  redis.sendCommand = (command, stream) => {
    command.promise.then(answered, answered);
    return send(command, stream);
  };
  redis.on("connect", () => {
    bytes = 0;
    redis.stream.on("data", ({ length }: Buffer) => {
      bytes += length;
      if (bytes <= REDIS_ANSWER_BYTES) return;
      const error = new Error(ANSWER_TOO_LARGE);
      redis.recoverFromFatalError(error, error, { offlineQueue: false });
      redis.stream.destroy();
    });
  });
  return redis;
}

function boundCluster(cluster: Cluster): Cluster {
  cluster.on("+node", boundAnswers);
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (...given) => boundCluster(duplicate(...given));
  return cluster;
}

/** BullMQ waits for the `end` of its connections, which ioredis does not emit while it pauses before a reconnect. */
class EndingRedis extends Redis {
  override disconnect(reconnect = false): void {
    const isPausing = this.status === "reconnecting" && !reconnect;
    // Only so that the disconnect below emits `end`.
    if (isPausing) this.connect().catch(() => {});
    super.disconnect(reconnect);
  }

  /** `never` fits every type: the declared one depends on `replyMapping`, which is always the same here. */
  override duplicate(override: Partial<RedisOptions> = {}): never {
    const options: RedisOptions = Object.assign({}, this.options, override);
    // A worker's connection may still lead to a server that has become a replica.
    return boundAnswers(
      new EndingRedis({ ...options, replyMapping: "legacy", reconnectOnError: isReadOnly }),
    ) as never;
  }
}

/** Never throws. Connects in the background, and reconnects until it is closed. */
export function connect(settings: RedisSettings): RedisClient {
  const retryStrategy = (times: number) => Math.min(100 * 2 ** Math.min(times, 10), LONGEST_PAUSE_MS);
  const options = {
    // Required by BullMQ: commands wait until Redis is back.
    maxRetriesPerRequest: null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    ...credentials(settings),
    ...security(settings),
  };
  if (settings.cluster.length > 0) {
    const nodes = settings.cluster.map(parseNode);
    return boundCluster(new Cluster(nodes, { redisOptions: options, clusterRetryStrategy: retryStrategy }));
  }
  if (settings.sentinels.length > 0) {
    const redis = new EndingRedis({
      ...options,
      retryStrategy,
      sentinels: settings.sentinels.map(parseNode),
      name: settings.sentinelName ?? "mymaster",
      ...(settings.sentinelPassword === undefined ? {} : { sentinelPassword: settings.sentinelPassword }),
      db: databaseOf(settings.url),
      // Without these, connections to the sentinels and to the master would not be encrypted.
      ...(options.tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: options.tls }),
    });
    return boundAnswers(redis);
  }
  const server = parseNode(settings.url?.host || "127.0.0.1");
  return boundAnswers(
    new EndingRedis({ ...options, retryStrategy, ...server, db: databaseOf(settings.url) }),
  );
}

/** Waits for the connection. Throws the first error, and `STOPPED`. */
export async function untilReady(client: RedisClient, signal: AbortSignal): Promise<void> {
  if (client.status === "ready") return;
  await once(client, "ready", { signal }).catch((error: unknown) => {
    throw signal.aborted ? new Fault("STOPPED") : error;
  });
}

export interface RedisFacts {
  readonly version: string;
  /** With any policy but `noeviction`, Redis may drop jobs. */
  readonly evictionPolicy: string;
}

/** In a cluster, the facts of a node that evicts, if there is one. Throws `QUEUE_UNSUITABLE` for a server that is too old. */
export async function inspectRedis(client: RedisClient): Promise<RedisFacts> {
  const nodes = client instanceof Cluster ? client.nodes("master") : [client];
  const facts = (await Promise.all(nodes.map((node) => node.info()))).map(readFacts);
  const unsuitable = facts.find(({ version }) => isTooOld(version));
  if (unsuitable !== undefined) {
    throw new Fault("QUEUE_UNSUITABLE", { detail: `version ${unsuitable.version || "unknown"}` });
  }
  const evicting = facts.find(({ evictionPolicy }) => evictionPolicy !== "noeviction");
  return evicting ?? facts[0] ?? { version: "", evictionPolicy: "" };
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
  const [minMajor, minMinor] = MIN_VERSION;
  return major < minMajor || (major === minMajor && minor < minMinor);
}

function credentials({ url, username, password }: RedisSettings): { username?: string; password?: string } {
  const user = username ?? decodeURIComponent(url?.username ?? "");
  const secret = password ?? decodeURIComponent(url?.password ?? "");
  return { ...(user === "" ? {} : { username: user }), ...(secret === "" ? {} : { password: secret }) };
}

function security({ url, ca }: RedisSettings): { tls?: ConnectionOptions } {
  if (url?.protocol !== "rediss:") return {};
  return { tls: authoritiesWith(ca) };
}

function databaseOf(url: URL | undefined): number {
  return Number(url?.pathname.slice(1) || 0);
}

function parseNode(node: string): { host: string; port: number } {
  const { hostname, port } = new URL(`redis://${node}`);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 6379) };
}

/** Without credentials. */
export function describeAddress({ url, sentinels, cluster }: RedisSettings): string {
  const nodes = [...cluster, ...sentinels];
  return nodes.length > 0 ? nodes.join(", ") : (url?.host ?? "");
}

export interface QueueReport extends RedisFacts {
  /** Without credentials. */
  readonly address: string;
}

/**
 * Checks Redis without changing anything. Throws `QUEUE_UNREACHABLE`, also without an answer in time, `QUEUE_REFUSED` and
 * `QUEUE_UNSUITABLE`.
 */
export async function inspectQueue(
  redis: RedisSettings,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<QueueReport> {
  const address = describeAddress(redis);
  const client = connect(redis);
  // `untilReady` reports the error; without a listener ioredis would print it too.
  client.on("error", () => {});
  const late = AbortSignal.timeout(timeoutMs);
  const either = AbortSignal.any([signal, late]);
  try {
    await untilReady(client, either);
    return { ...(await unlessStopped(inspectRedis(client), 0, either)), address };
  } catch (error) {
    const isLate = late.aborted && !signal.aborted;
    if (!isLate) throw faultOfRedis(error, address) ?? asFault(error);
    throw new Fault("QUEUE_UNREACHABLE", { detail: `${address} (no answer in ${timeoutMs / 1000} s)` });
  } finally {
    client.disconnect();
  }
}
