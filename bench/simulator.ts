/** The simulated service as a process of its own, so that what it takes is not counted. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** Starts the program of this checkout. */
export const LAUNCHER = resolve(import.meta.dirname, "../bin/inlet.cjs");

/** As much of a scenario as measurements need. */
export interface SimulatedTransfers {
  readonly transfers: readonly {
    readonly from: string;
    readonly to: readonly string[];
    readonly password: string;
    readonly files: readonly { readonly name: string; readonly generate: { readonly bytes: number } }[];
  }[];
}

/** Disposing of it ends the process, and returns when it has ended. */
export interface RunningSimulator extends AsyncDisposable {
  readonly url: string;
  readonly clientId: string;
  readonly pid: number;
  readonly transfers: readonly { readonly transferId: string }[];
}

/** Resolves when it listens. Its scenario stands in `folder`. */
export async function startSimulator(
  launcher: string,
  folder: string,
  scenario: SimulatedTransfers,
): Promise<RunningSimulator> {
  const path = join(folder, "scenario.json");
  writeFileSync(path, JSON.stringify(scenario));
  const child = spawn(process.execPath, [launcher, "simulate", "--quiet", "--scenario", path], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
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
