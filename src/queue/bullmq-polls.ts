/**
 * Turns of polls that all processes share. The process that sets the key of a mailbox polls it, and no other process does
 * until the key expires. So each mailbox has one poll per interval, whichever processes run, and whatever Redis has lost.
 */
import { createHash } from "node:crypto";
import { unlessStopped } from "../base/deadline.ts";
import { DAY_MS } from "../base/timetable.ts";
import type { RedisClient } from "./bullmq-connection.ts";
import type { RedisWatch } from "./bullmq-watch.ts";
import type { PollTurns } from "./polls.ts";

/** The values of a mailbox's key. `WAITS`: the last poll has failed. */
const [POLLED, WAITS] = ["polled", "waits"];
/** Another process may poll the mailbox on request, and end its wait. */
const CHECK_AGAIN_MS = 60_000;
/** A key that lasts longer is not ours. */
const LONGEST_WAIT_MS = DAY_MS;
/** Without an answer of Redis, no mailbox is polled. */
const ANSWER_MS = 2_000;
const RETRY_MS = 1_000;

export function sharedTurns(client: RedisClient, prefix: string, watch: RedisWatch): PollTurns {
  /** Redis keeps no addresses. */
  const keyOf = (kind: "poll" | "poll-limit", name: string) =>
    `${prefix}:${kind}:${createHash("sha256").update(name).digest("hex").slice(0, 24)}`;
  const remainingMs = async (key: string) => {
    const ms = await client.pttl(key);
    return ms <= LONGEST_WAIT_MS ? ms : 0;
  };
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
    async take(mailbox, service, everyMs) {
      const key = keyOf("poll", mailbox);
      const heldMs = await ask(async () => {
        const limitMs = await remainingMs(keyOf("poll-limit", service));
        if (limitMs > 0) return limitMs;
        const isTaken = (await client.set(key, POLLED, "PX", expiry(everyMs), "NX")) === "OK";
        if (isTaken) return 0;
        const leftMs = await remainingMs(key);
        // It has just expired, or it is not ours.
        if (leftMs <= 0) await client.del(key);
        return Math.max(leftMs, 1);
      });
      return Math.min(heldMs ?? RETRY_MS, CHECK_AGAIN_MS);
    },
    async end(mailbox, service, nextMs, { waitMs, limitMs = 0 }) {
      const key = keyOf("poll", mailbox);
      // If this fails, the mailbox is polled at its interval.
      await ask(async () => {
        if (limitMs > 0) await client.set(keyOf("poll-limit", service), WAITS, "PX", expiry(limitMs));
        if (nextMs > 0) await client.set(key, waitMs > 0 ? WAITS : POLLED, "PX", expiry(nextMs));
        else await client.del(key);
      });
    },
    reset: (mailboxes, services) =>
      watch.reach(async () => {
        if (mailboxes.length === 0) return [];
        const values = await client.mget(mailboxes.map((mailbox) => keyOf("poll", mailbox)));
        const waiting = mailboxes.filter((_, at) => values[at] === WAITS);
        const limits = [...services].map((service) => keyOf("poll-limit", service));
        await client.del([...limits, ...waiting.map((mailbox) => keyOf("poll", mailbox))]);
        return waiting;
      }),
  };
}

function expiry(ms: number): number {
  return Math.ceil(Math.min(ms, LONGEST_WAIT_MS));
}
