/** Every delivered folder below a folder, one after the other, however many there are. */
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../base/faults.ts";
import { MANIFEST } from "../../collect/plan.ts";

/**
 * The folder itself, and those below it, that hold a manifest. Links are not followed, and what begins with a dot is passed
 * over: nothing is ever delivered there. A folder that cannot be read goes to `onUnreadable`.
 */
export async function* findDelivered(
  folder: string,
  onUnreadable: (folder: string, code: string) => void,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  if (signal.aborted) throw new Fault("STOPPED");
  if (await isDelivered(folder)) yield folder;
  try {
    for await (const entry of await opendir(folder)) {
      if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
      yield* findDelivered(join(folder, entry.name), onUnreadable, signal);
    }
  } catch (error) {
    if (error instanceof Fault || !(error instanceof Error && "syscall" in error && "code" in error))
      throw error;
    onUnreadable(folder, String(error.code));
  }
}

async function isDelivered(folder: string): Promise<boolean> {
  return lstat(join(folder, MANIFEST)).then(
    () => true,
    () => false,
  );
}
