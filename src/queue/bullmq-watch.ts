/**
 * Watches Redis. Any error of it begins the trouble of the queue. The trouble ends when all commands that Inlet needs work
 * again, and no error was reported for a while.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Coalesced } from "../base/concurrency.ts";
import { unlessStopped } from "../base/deadline.ts";
import { asFault, Fault } from "../base/faults.ts";
import { describeAddress, type RedisClient, type RedisSettings, untilReady } from "./bullmq-connection.ts";
import { faultOfRedis, isReadOnly, isUnnamedCommand, unreachable } from "./bullmq-errors.ts";
import type { EngineOptions } from "./port.ts";

export interface WatchOptions extends Pick<EngineOptions, "outage" | "signal"> {
  readonly redis: RedisSettings;
  /** Wait while Redis cannot be used, instead of throwing. */
  readonly waitForRedis: boolean;
}

const CHECK_EVERY_MS = 5_000;
/** After an error, a check follows within this time. */
const CHECK_SOON_MS = 200;
const ANSWER_MS = 10_000;
/** Longer than the pause before a reconnect: connections notice one after the other that Redis is back. */
const QUIET_MS = 8_000;
const RETRY_MS = 1_000;
/** After a stop, how long to wait for an answer. */
const STOP_MS = 3_000;
const KEY = "redis";
/** The message of ioredis. */
const CONNECTION_CLOSED = "Connection is closed.";

/** The digest of a script that Redis does not know. */
const NO_SCRIPT = "0".repeat(40);

/** Every command that Inlet and BullMQ use, with arguments after the key. They leave nothing behind. */
const LINES = `
del; set 1 PX 1000; get; mget; incr; pexpire 1000; pttl; exists; type; del
hset f 1; hmset f 1; hget f; hmget f; hgetall; hexists f; hincrby f 1; hdel f
lpush a; rpush a; llen; lrange 0 0; lrem 1 b; del
sadd a; scard; smembers; smismember a; srem a
zadd 1 a; zscore a; zrange 0 0; zrangebyscore 0 1; zrevrangebyscore 1 0; zcard; zpopmin; bzpopmin 0.001; zrem a
xadd * f v; xtrim MAXLEN 1; del`;
export const COMMANDS = [...LINES.matchAll(/[^;\n]+/g)].map(([command]) => command.trim().split(" "));

export class RedisWatch {
  readonly #client: RedisClient;
  readonly #options: WatchOptions;
  /** Without credentials. */
  readonly #address: string;
  readonly #probeKey: string;
  readonly #checking = new Coalesced(() => this.#check(), CHECK_SOON_MS);
  readonly #timer: NodeJS.Timeout;
  /** The trouble, while there is one. */
  #fault: Fault | undefined;
  /** The last reported error, and when it was reported, on the monotonic clock. */
  #reported: { readonly fault: Fault; readonly atMs: number } | undefined;
  #closed = false;

  constructor(client: RedisClient, options: WatchOptions) {
    this.#client = client;
    this.#options = options;
    this.#address = describeAddress(options.redis);
    this.#probeKey = `${options.redis.prefix}:probe:${randomBytes(8).toString("hex")}`;
    client.on("error", this.report);
    this.#timer = setInterval(() => this.#checking.isIdle && this.#checking.schedule(), CHECK_EVERY_MS);
  }

  /** The present trouble of Redis. */
  get fault(): Fault | undefined {
    return this.#fault;
  }

  /** Returns the fault; `undefined` if the error is not one of Redis. */
  readonly report = (error: unknown): Fault | undefined => {
    const fault = faultOfRedis(error, this.#address);
    if (fault === undefined || this.#closed) return fault;
    this.#reported = { fault, atMs: performance.now() };
    if (fault.code === "QUEUE_UNREACHABLE") this.#show(fault);
    // The check names the command that is not allowed.
    else this.#checking.schedule();
    return fault;
  };

  /** Resolves when Redis can be used. Throws its trouble unless `waitForRedis` is set, and `STOPPED`. */
  async untilUsable(): Promise<void> {
    await this.reach(async () => {
      const fault = await this.#probe();
      if (fault === undefined) return;
      this.#show(fault);
      throw fault;
    });
  }

  /**
   * Repeats work that Redis refuses until Redis does it. Throws the trouble unless `waitForRedis` is set, and `STOPPED` when
   * Redis does not do it in time after a stop.
   */
  async reach<Result>(work: () => Promise<Result>): Promise<Result> {
    const { signal, waitForRedis } = this.#options;
    for (;;) {
      try {
        // In a process that does not wait, work that depends on workers would never end.
        if (!waitForRedis && this.#fault?.code === "QUEUE_REFUSED") throw this.#fault;
        return await unlessStopped(work(), STOP_MS, signal);
      } catch (error) {
        const fault = error instanceof Fault ? error : (this.report(error) ?? this.#faultOf(error));
        const isOfRedis = fault.code === "QUEUE_UNREACHABLE" || fault.code === "QUEUE_REFUSED";
        if (!isOfRedis || !waitForRedis) throw fault;
        await pause(RETRY_MS, undefined, { signal }).catch(() => {
          throw new Fault("STOPPED");
        });
      }
    }
  }

  /** A command that was under way when its connection was closed has no error of Redis. */
  #faultOf(error: unknown): Fault {
    const isCutOff = error instanceof Error && error.message === CONNECTION_CLOSED;
    return isCutOff ? unreachable(this.#address, "the connection was closed", error) : asFault(error);
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#closed) return;
    const fault = await this.#probe();
    if (this.#closed) return;
    if (fault !== undefined) return this.#show(fault);
    const { fault: reported, atMs = 0 } = this.#reported ?? {};
    const isRecent = performance.now() - atMs < QUIET_MS;
    if (reported !== undefined && isRecent) {
      // An earlier check has named the command.
      return this.#show(isUnnamedCommand(reported) ? (this.#fault ?? reported) : reported);
    }
    this.#reported = undefined;
    this.#fault = undefined;
    this.#options.outage.clear(KEY);
  }

  #show(fault: Fault): void {
    // The errors of several connections differ while nothing changes.
    if (this.#fault?.code === "QUEUE_UNREACHABLE" && fault.code === "QUEUE_UNREACHABLE") return;
    this.#fault = fault;
    this.#options.outage.add(KEY, fault);
  }

  /** Returns why Redis cannot be used now. */
  async #probe(): Promise<Fault | undefined> {
    const client = this.#client;
    const late = AbortSignal.timeout(ANSWER_MS);
    try {
      await untilReady(client, late);
      await unlessStopped(this.#tryAll(), 0, late);
      return undefined;
    } catch (error) {
      const isSilent = late.aborted;
      // Another server may have taken over under the same name.
      const isStale = isSilent || (error instanceof Error && isReadOnly(error));
      if (isStale && client.status === "ready") client.disconnect(true);
      if (isSilent) return unreachable(this.#address, `no answer in ${ANSWER_MS / 1_000} s`);
      return faultOfRedis(error, this.#address) ?? asFault(error);
    }
  }

  async #tryAll(): Promise<void> {
    const key = this.#probeKey;
    const commands = [
      ...COMMANDS.map(([name = "", ...args]) => [name, key, ...args]),
      ["rpoplpush", key, key],
      ["eval", "return redis.call('exists', KEYS[1])", 1, key],
      ["evalsha", NO_SCRIPT, 1, key],
    ];
    const answers = (await this.#client.multi(commands).exec()) ?? [];
    for (const [error] of answers) if (error !== null && !error.message.startsWith("NOSCRIPT")) throw error;
  }
}
