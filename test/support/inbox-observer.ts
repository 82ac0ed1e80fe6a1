/**
 * A consumer that inspects each folder of an inbox as soon as it appears, and records problems: a missing manifest, a
 * missing file, wrong content.
 */
import { createHash } from "node:crypto";
import { type Dirent, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface InboxObserver {
  readonly problems: string[];
  close(): void;
}

/** `everyMs`: the pause between two looks. By default, for a daemon in this process, each turn of the event loop. */
export function observeInbox(inbox: string, everyMs?: number): InboxObserver {
  const problems: string[] = [];
  const seen = new Set<string>();
  let open = true;
  const look = () => {
    for (const folder of findDeliveries(inbox, seen)) {
      seen.add(folder);
      problems.push(...inspect(folder).map((problem) => `${folder}: ${problem}`));
    }
  };
  const watch = () => {
    if (!open) return;
    look();
    // Without a reference it runs in every turn, and lets the process rest while nothing happens.
    if (everyMs === undefined) setImmediate(watch).unref();
    else setTimeout(watch, everyMs);
  };
  watch();
  return {
    problems,
    close() {
      open = false;
      look();
    },
  };
}

/** A delivery is a folder with files; folders above it hold only folders. */
function findDeliveries(folder: string, seen: ReadonlySet<string>): string[] {
  if (seen.has(folder)) return [];
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  if (entries.some((entry) => entry.isFile())) return [folder];
  return entries.flatMap((entry) =>
    entry.name === ".inlet" || !entry.isDirectory() ? [] : findDeliveries(join(folder, entry.name), seen),
  );
}

function inspect(folder: string): string[] {
  try {
    const manifest = JSON.parse(readFileSync(join(folder, "transfer.json"), "utf8"));
    const sums = readFileSync(join(folder, "SHA256SUMS"), "utf8").trimEnd().split("\n").filter(Boolean);
    const wrong = sums.filter((line) => {
      const [sum, name] = [line.slice(0, 64), line.slice(66)];
      return (
        createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex") !== sum
      );
    });
    const names = new Set(sums.map((line) => line.slice(66)));
    const missing = (manifest.files as { name: string }[]).filter((file) => !names.has(file.name));
    return [
      ...wrong.map((line) => `wrong bytes: ${line}`),
      ...missing.map((file) => `no sum for ${file.name}`),
    ];
  } catch (error) {
    return existsSync(folder) ? [String(error)] : [];
  }
}
