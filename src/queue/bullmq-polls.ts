/**
 * Turns of polls that all processes share. The process that sets the key of a mailbox polls it, and no other process does
 * until the key expires. So each mailbox has one poll per interval, whichever processes run, and whatever Redis has lost.
 */
import { hash } from "node:crypto";
import { unlessStopped } from "../base/deadline.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { PollSchedule } from "../model/job.ts";
import type { RedisClient } from "./bullmq-connection.ts";
import type { RedisWatch, WatchOptions } from "./bullmq-watch.ts";
import type { PollTurns } from "./polls.ts";
import type { EngineOptions } from "./port.ts";

/** The values of a mailbox's key: the last poll has succeeded, or it has failed and the mailbox waits. */
const [POLLED, WAITS] = ["polled", "waits"];
/** A mailbox whose turn comes later is checked again within this time: a request may have ended its wait. */
const CHECK_AGAIN_MS = 60_000;
/** A key that lasts longer is not ours. */
const LONGEST_WAIT_MS = DAY_MS;
/** Without an answer of Redis in this time, no mailbox is polled, and Redis is asked again after a pause. */
const ANSWER_MS = 2_000;
const RETRY_MS = 1_000;

export function sharedTurns(
  options: EngineOptions & WatchOptions,
  client: RedisClient,
  watch: RedisWatch,
): PollTurns {
  const { prefix } = options.redis;
  /** Redis keeps no addresses. With another interval, a mailbox has another key. */
  const keyOf = ({ mailbox, everyMs }: PollSchedule) => `${prefix}:poll:${digestOf(`${mailbox} ${everyMs}`)}`;
  const limitOf = (service: string) => `${prefix}:poll-limit:${digestOf(service)}`;
  /** Not above 0 for a key that is missing or not ours. */
  const remainingMs = async (key: string) => {
    const ms = await client.pttl(key);
    return ms <= LONGEST_WAIT_MS ? ms : 0;
  };
  /** Returns `undefined` if Redis does not answer. */
  const ask = async <Result>(work: () => Promise<Result>): Promise<Result | undefined> => {
    if (client.status !== "ready") return undefined;
    try {
      return await unlessStopped(work(), 0, AbortSignal.timeout(ANSWER_MS));
    } catch (error) {
      watch.report(error);
      return undefined;
    }
  };
  return {
    async take(poll) {
      const key = keyOf(poll);
      const heldMs = await ask(async () => {
        const limitMs = await remainingMs(limitOf(poll.service));
        if (limitMs > 0) return limitMs;
        const isTaken = (await client.set(key, POLLED, "PX", expiry(poll.everyMs), "NX")) === "OK";
        if (isTaken) return 0;
        const leftMs = await remainingMs(key);
        // The key has just expired, or is not ours.
        if (leftMs <= 0) await client.del(key);
        return Math.max(leftMs, 1);
      });
      return Math.min(heldMs ?? RETRY_MS, CHECK_AGAIN_MS);
    },
    async end(poll, nextMs, { waitMs, limitMs = 0 }) {
      // If this fails, the mailbox is polled at its interval.
      await ask(async () => {
        if (limitMs > 0) await client.set(limitOf(poll.service), WAITS, "PX", expiry(limitMs));
        if (poll.everyMs === 0) return;
        await client.set(keyOf(poll), waitMs > 0 ? WAITS : POLLED, "PX", expiry(nextMs));
      });
    },
    reset: (polls, dropped) =>
      watch.reach(async () => {
        const values = polls.length === 0 ? [] : await client.mget(polls.map(keyOf));
        const waiting = polls.filter((_, at) => values[at] === WAITS);
        const limits = [...new Set(options.services().values())].map(limitOf);
        const keys = [...limits, ...[...waiting, ...dropped].map(keyOf)];
        if (keys.length > 0) await client.del(keys);
        return waiting.map(({ mailbox }) => mailbox);
      }),
  };
}

function digestOf(name: string): string {
  return hash("sha256", name).slice(0, 24);
}

function expiry(ms: number): number {
  return Math.ceil(Math.min(ms, LONGEST_WAIT_MS));
}
