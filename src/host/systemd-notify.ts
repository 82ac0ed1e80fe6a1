/**
 * Sends notifications to systemd. Its Unix socket takes datagrams, which Node cannot send, so the program `systemd-notify`
 * sends them, and waits until systemd has processed them. The unit allows that with `NotifyAccess=all`.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Mutex } from "../base/concurrency.ts";
import { messageOf } from "../base/faults.ts";
import { describeStartFailure } from "../base/system-program.ts";
import { pauseOrAbort } from "../base/timers.ts";

const PROGRAM = "systemd-notify";
/** The program takes a few milliseconds, unless systemd itself hangs. */
const TIMEOUT_MS = 3_000;

/** `onFailure` is called once, for the first failure. */
export function createNotifier(
  socket: string,
  path: string | undefined,
  onFailure: (reason: string) => void,
) {
  const env = { NOTIFY_SOCKET: socket, ...(path === undefined ? {} : { PATH: path }) };
  const mutex = new Mutex();
  let hasFailed = false;
  let isClosed = false;
  const notify = async (assignments: readonly string[]) => {
    if (isClosed) return;
    try {
      await run(assignments, env);
    } catch (error) {
      if (!hasFailed) onFailure(messageOf(error));
      hasFailed = true;
    }
  };
  return {
    /** Sends assignments such as `READY=1`, in the order of the calls. Resolves when systemd has processed them. */
    send: (...assignments: readonly string[]): Promise<void> => mutex.run(() => notify(assignments)),
    /** Waits for pending notifications, but only for a moment: systemd may hang. */
    async close(): Promise<void> {
      const timeout = new AbortController();
      await Promise.race([mutex.idle(), pauseOrAbort(TIMEOUT_MS, timeout.signal)]);
      isClosed = true;
      timeout.abort();
    },
  };
}

export type Notifier = ReturnType<typeof createNotifier>;

async function run(assignments: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
  const child = spawn(PROGRAM, [...assignments], { env, stdio: "ignore", timeout: TIMEOUT_MS });
  const [code, signal] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${PROGRAM} ${describeStartFailure(error)}`);
  });
  if (code !== 0) throw new Error(`${PROGRAM} ended with ${code ?? signal}`);
}
