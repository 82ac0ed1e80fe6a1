/** The simulated service as a process of its own, so that its CPU and memory are not counted. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** The launcher of this checkout. */
export const LAUNCHER = resolve(import.meta.dirname, "../../bin/inlet.cjs");

/** Of its standard error, apart from requests. */
const MAX_ERROR_CHARACTERS = 10_000;

/** The part of a scenario that measurements need. */
export interface SimulatedTransfers {
  readonly transfers: readonly {
    readonly from: string;
    readonly to: readonly string[];
    readonly password: string;
    readonly files: readonly { readonly name: string; readonly generate: { readonly bytes: number } }[];
  }[];
  readonly faults?: readonly {
    readonly on: string;
    readonly times: "always";
    readonly does: { readonly kind: "stall"; readonly seconds: number };
  }[];
}

/** Dispose it to kill the process and wait for its end. */
export interface RunningSimulator extends AsyncDisposable {
  readonly url: string;
  readonly clientId: string;
  readonly pid: number;
  readonly transfers: readonly { readonly transferId: string; readonly trackingId: string }[];
}

/** Resolves when it listens. `folder`: for its scenario. `onRequest` is called with the log line of each request. */
export async function startSimulator(
  launcher: string,
  folder: string,
  scenario: SimulatedTransfers,
  onRequest?: (line: string) => void,
): Promise<RunningSimulator> {
  const path = join(folder, "scenario.json");
  writeFileSync(path, JSON.stringify(scenario));
  const quiet = onRequest === undefined ? ["--quiet"] : [];
  const child = spawn(process.execPath, [launcher, "simulate", ...quiet, "--scenario", path], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (/^(GET|POST) /.test(line)) onRequest?.(line);
    else errors = `${errors}${line}\n`.slice(-MAX_ERROR_CHARACTERS);
  });
  const ended = once(child, "close");
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
  if (typeof line !== "string") throw new Error(`the simulated service did not start: ${errors}`);
  return {
    ...JSON.parse(line),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
