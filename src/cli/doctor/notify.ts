/** Checks that each mail server of the notifications answers, and accepts the login. */
import { asFault } from "../../base/faults.ts";
import type { Settings } from "../../config/settings.ts";
import { describeChannel } from "../../model/notify.ts";
import { checkMailServer } from "../../notify/send.ts";
import type { Findings } from "./findings.ts";

const TIMEOUT_MS = 10_000;

/** Sends no mail, and does not call webhooks: a receiver could take a call for a notification. */
export async function checkNotify(
  findings: Findings,
  { notify = [] }: Settings,
  signal: AbortSignal,
): Promise<void> {
  for (const [at, { channel }] of notify.entries()) {
    const check = `notify[${at}]`;
    if (channel.kind === "webhook") {
      findings.skip("notifications", check, `${describeChannel(channel)}: inlet notify test calls it`);
      continue;
    }
    try {
      await checkMailServer({ ...channel, timeoutMs: Math.min(channel.timeoutMs, TIMEOUT_MS) }, signal);
      findings.ok("notifications", check, `${describeChannel(channel)}: the server answers`);
    } catch (error) {
      const fault = asFault(error);
      if (fault.code === "STOPPED") throw fault;
      findings.failWith("notifications", check, fault);
    }
  }
}
