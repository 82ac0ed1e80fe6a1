/** Hand-off settings for tests. This file needs no test runner. */

import type { Announced, Delivery } from "../../src/handoff/delivery.ts";
import type { Following } from "../../src/handoff/entry.ts";
import type { HandoffPatience } from "../../src/handoff/port.ts";
import { STEPS } from "../../src/model/handoff.ts";
import type { Check, Handoff } from "../../src/model/mailbox.ts";
import { receiverAt } from "./settings.ts";

export const WEBHOOK_SECRET = "Quiet+River%17";

/** Short, so that tests need not wait. */
export const HANDOFF_PATIENCE: HandoffPatience = {
  retryMs: 20,
  giveUpMs: 3_600_000,
  scanMs: 20,
  killMs: 300,
};

/** As JSON, for a task of another process. */
export interface HandoffTask {
  readonly command?: readonly [string, ...string[]];
  readonly commandTimeoutMs?: number;
  readonly webhook?: string;
  readonly webhookTimeoutMs?: number;
  readonly acknowledgement?: string;
  readonly expectWithinMs?: number;
  readonly deliver?: Handoff["deliver"];
  readonly manifest?: Handoff["manifest"];
  readonly done?: string;
  readonly unpack?: Handoff["unpack"];
  readonly keep?: { readonly pickedUpMs?: number; readonly notPickedUpMs?: number };
}

/** What follows a delivery that was decided with these settings. */
export function followingWith(handoff: Handoff): Following {
  return { steps: STEPS.filter((step) => handoff[step] !== undefined), handoff };
}

/** A delivered folder with its manifest inside. */
export function announced(delivery: Delivery): Announced {
  const manifest = `${delivery.folder}/transfer.json`;
  return { ...delivery, manifest, manifestPath: `/srv/inbox/${manifest}`, files: undefined };
}

/** A shell script that runs in the folder of the transfer; `$0`, `$1` … are the arguments. */
export function checkWith(script: string, args: readonly string[] = [], more: Partial<Check> = {}): Check {
  return {
    argv: ["sh", "-c", `cd "$INLET_FOLDER" && { ${script}\n}`, ...args],
    env: { PATH: process.env["PATH"] ?? "" },
    timeoutMs: 60_000,
    memoryBytes: undefined,
    ...more,
  };
}

export function makeHandoff(task: HandoffTask, fileMode = 0o640, marker?: string): Handoff {
  const { command, webhook, keep = {}, deliver = "folder" } = task;
  const { manifest = deliver === "files" ? "none" : "inside", done, unpack = "none" } = task;
  const env = { PATH: process.env["PATH"] ?? "" };
  return {
    fileMode,
    folderMode: 0o750,
    marker,
    deliver,
    manifest,
    done,
    unpack,
    command:
      command === undefined ? undefined : { argv: command, env, timeoutMs: task.commandTimeoutMs ?? 60_000 },
    webhook:
      webhook === undefined
        ? undefined
        : receiverAt(webhook, WEBHOOK_SECRET, { timeoutMs: task.webhookTimeoutMs ?? 30_000 }),
    acknowledgement: task.acknowledgement,
    expectWithinMs: task.expectWithinMs,
    keep: { pickedUpMs: keep.pickedUpMs, notPickedUpMs: keep.notPickedUpMs },
  };
}
