/**
 * Tells systemd how the service is. Its socket takes datagrams, which Node cannot send: systemd's own `systemd-notify`
 * speaks for us, and waits until systemd has heard it. The unit allows that by `NotifyAccess=all`.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { Mutex } from "../base/concurrency.ts";
import { messageOf } from "../base/faults.ts";
import { describeStartFailure } from "../base/process.ts";

const PROGRAM = "systemd-notify";
/** It takes some milliseconds, unless systemd itself hangs. */
const MOST_MS = 3_000;

export interface Notifier {
  /** Assignments such as `READY=1`, told in the order in which they are given. Resolves when they were heard. */
  tell(...assignments: readonly string[]): Promise<void>;
  /** Resolves when what was told is heard, or soon: nobody waits for a systemd that hangs. */
  close(): Promise<void>;
}

/** `failed` hears once why systemd cannot be told. */
export function createNotifier(
  socket: string,
  path: string | undefined,
  failed: (reason: string) => void,
): Notifier {
  const env = { NOTIFY_SOCKET: socket, ...(path === undefined ? {} : { PATH: path }) };
  const order = new Mutex();
  let isTold = false;
  let isClosed = false;
  const speak = async (assignments: readonly string[]) => {
    if (isClosed) return;
    try {
      await run(assignments, env);
    } catch (error) {
      if (!isTold) failed(messageOf(error));
      isTold = true;
    }
  };
  return {
    tell: (...assignments) => order.run(() => speak(assignments)),
    async close() {
      const patience = new AbortController();
      await Promise.race([order.idle(), pause(MOST_MS, undefined, patience).catch(() => {})]);
      isClosed = true;
      patience.abort();
    },
  };
}

async function run(assignments: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const child = spawn(PROGRAM, [...assignments], { env, stdio: "ignore", timeout: MOST_MS });
  const [code, signal] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${PROGRAM} ${describeStartFailure(error)}`);
  });
  if (code !== 0) throw new Error(`${PROGRAM} ended with ${code ?? signal}`);
}
