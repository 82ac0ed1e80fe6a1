/** The simulated service as a process of its own, so that what it takes is not counted. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** Starts the program of this checkout. */
export const LAUNCHER = resolve(import.meta.dirname, "../../bin/inlet.cjs");

/** How much is kept of what it says beside its requests. */
const MOST_COMPLAINTS = 10_000;

/** As much of a scenario as measurements need. */
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

/** Disposing of it ends the process, and returns when it has ended. */
export interface RunningSimulator extends AsyncDisposable {
  readonly url: string;
  readonly clientId: string;
  readonly pid: number;
  readonly transfers: readonly { readonly transferId: string; readonly trackingId: string }[];
}

/** Resolves when it listens. Its scenario stands in `folder`. `onRequest` hears a line about each request. */
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
  let complaints = "";
  createInterface({ input: child.stderr }).on("line", (line) => {
    if (/^(GET|POST) /.test(line)) onRequest?.(line);
    else complaints = `${complaints}${line}\n`.slice(-MOST_COMPLAINTS);
  });
  const ended = once(child, "close");
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended]);
  if (typeof line !== "string") throw new Error(`the simulated service did not start: ${complaints}`);
  return {
    ...JSON.parse(line),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
