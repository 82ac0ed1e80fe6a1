/** What of new settings can be applied to a daemon that runs, and what has to wait for a restart. */
import { isDeepStrictEqual } from "node:util";
import type { Settings } from "../config/settings.ts";

/** The names of keys, as in the configuration. Secrets are compared by what they are called, not by what they hold. */
export function needsRestart(old: Settings, next: Settings): string[] {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ["inbox", old.inbox, next.inbox],
    ["work", old.work, next.work],
    ["state", old.state, next.state],
    ["queue", plain(old.queue), plain(next.queue)],
    ["http", plain(old.http), plain(next.http)],
    ["limits.transfers", old.limits.transfers, next.limits.transfers],
    ["limits.minFreeSpace", old.limits.minFreeBytes, next.limits.minFreeBytes],
    ["limits.bandwidth", plain(old.limits.bandwidth), plain(next.limits.bandwidth)],
  ];
  return pairs.filter(([, before, after]) => !isDeepStrictEqual(before, after)).map(([name]) => name);
}

/** As JSON shows it: functions fall away, and what they close over. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}
