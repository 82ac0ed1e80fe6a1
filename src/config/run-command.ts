/** Runs a program for what it prints: without a shell, for a limited time, and without its complaints. */
import { spawn } from "node:child_process";
import { describeStartFailure, signalGroup } from "../base/process-group.ts";
import type { Environment } from "./environment.ts";

export type Outcome = { readonly bytes: Uint8Array } | { readonly why: string };

/**
 * What it printed, if it ended well. It gets no input and what it writes to standard error is dropped, because that may
 * quote a secret. It runs in a process group of its own, so that whatever it started ends with it.
 */
export async function runCommand(
  argv: readonly [string, ...string[]],
  env: Environment,
  timeoutMs: number,
  mostBytes: number,
  signal: AbortSignal,
): Promise<Outcome> {
  if (signal.aborted) return { why: "was stopped" };
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const child = start(argv, env);
  if (child === undefined) return { why: "could not be started" };
  const chunks: Buffer[] = [];
  let length = 0;

  const giveUp = (why: string): void => {
    child.stdout.destroy();
    signalGroup(child.pid, "SIGKILL");
    resolve({ why });
  };
  const stop = (): void => giveUp("was stopped");
  const timer = setTimeout(() => giveUp(`took longer than ${timeoutMs / 1000} s`), timeoutMs);
  signal.addEventListener("abort", stop, { once: true });

  child.stdout.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length > mostBytes) giveUp(`printed more than ${mostBytes / 1024} KiB`);
    else chunks.push(chunk);
  });
  child.once("error", (error) => resolve({ why: describeStartFailure(error) }));
  child.once("close", (code, killedBy) => {
    if (code === 0) resolve({ bytes: Buffer.concat(chunks) });
    else resolve({ why: killedBy === null ? `ended with exit code ${code}` : `was ended by ${killedBy}` });
  });
  return promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  });
}

function start([program, ...args]: readonly [string, ...string[]], env: Environment) {
  try {
    return spawn(program, args, { env, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    // An argument that no program can be given, such as one with a NUL; the message would quote it.
    return undefined;
  }
}
