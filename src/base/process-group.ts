/** Programs that run in a process group of their own, so that whatever they started ends with them. */

/** It may have ended a moment ago. */
export function signalGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {}
}

/** Why a program did not even begin, as the end of a sentence about it. */
export function describeStartFailure(error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") return "was not found";
  return error.code === "EACCES" ? "may not be run by this user" : `could not be started (${error.code})`;
}
