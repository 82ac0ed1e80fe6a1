/**
 * The daemon's memory in the state folder: its client id, and a verification token for each mailbox. Several processes share
 * the folder, so each fact has its own file (docs/decisions/016-one-file-per-fact.md).
 */

import { randomBytes } from "node:crypto";
import { unlink } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { systemDisk } from "../base/disk.ts";
import { createDurably, replaceDurably } from "../base/durable.ts";
import { Fault, unreadable } from "../base/faults.ts";
import { tryLstat, tryReadFile } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { closedDisks } from "../base/machine.ts";
import { Secret } from "../base/secret.ts";
import { CLIENT_ID_FILE, CLIENT_ID_PATTERN, type KeptToken, KeptTokenShape } from "../model/token.ts";

const CLIENT_ID = new RegExp(CLIENT_ID_PATTERN);

/**
 * Finds or creates the client id. The service's administrator has to register a new one. Processes that start at the same
 * time agree on one.
 */
export async function keepClientId(state: string) {
  const path = join(state, CLIENT_ID_FILE);
  const kept = await findClientId(state);
  if (kept !== undefined) return { clientId: kept, path, isNew: false };
  const clientId = makeClientId();
  const text = `${clientId.reveal()}\n`;
  try {
    await createDurably(path, text);
  } catch (error) {
    if (!(error instanceof Fault && error.code === "TARGET_EXISTS")) throw error;
    const other = await findClientId(state);
    if (other !== undefined) return { clientId: other, path, isNew: false };
    // The file exists, but holds no client id.
    await replaceDurably(path, text, 0o600);
  }
  return { clientId, path, isNew: true };
}

/** The client id in the state folder; `undefined` before the first start. Throws if the disk does not answer. */
export async function findClientId(state: string): Promise<Secret | undefined> {
  const path = join(state, CLIENT_ID_FILE);
  const text = await tryReadFile(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  return text !== undefined && CLIENT_ID.test(text.trim()) ? new Secret(text.trim()) : undefined;
}

export function makeClientId(): Secret {
  return new Secret(randomBytes(40).toString("hex"));
}

/** A temporary file of the package conf, left by a killed process. */
export const TEMPORARY_TOKEN = /\.json\.tmp-\d{10}[0-9a-f]{6}$/;

/**
 * Opens stores of tokens by name in existing folders. A write replaces the whole token, so the last of several processes wins.
 * Loads a package, so call it as a user who can read the installation.
 */
export async function loadTokenStores() {
  const Conf = await loadConf();
  // conf would compile a JSON schema for each mailbox; valibot checks the same without compiling.
  const deserialize = (text: string): Partial<KeptToken> => parseAs(KeptTokenShape, text) ?? {};
  return (folder: string) => {
    const open = (name: string) =>
      new Conf<Partial<KeptToken>>({
        cwd: folder,
        configName: name,
        configFileMode: 0o600,
        accessPropertiesByDotNotation: false,
        deserialize,
      });
    return {
      /** `undefined` for a token that is missing or damaged. */
      read(name: string): KeptToken | undefined {
        try {
          const { token, obtained, ...others } = open(name).store;
          return token === undefined || obtained === undefined ? undefined : { token, obtained, ...others };
        } catch {
          return undefined;
        }
      },
      /** The token survives a power cut when this resolves. Throws `DISK_FULL` or `DISK_REFUSED`. */
      async write(name: string, token: KeptToken): Promise<void> {
        const path = join(folder, `${name}.json`);
        // The functions of `files.ts` check this, but conf does not use them.
        const reason = closedDisks();
        if (reason !== undefined) throw reason;
        // conf would write through a link.
        if ((await tryLstat(path))?.isSymbolicLink()) await unlink(path);
        open(name).store = token;
        await systemDisk.syncFolder(folder);
      },
    };
  };
}

/**
 * Loads conf without the signal handlers of a package below it. They would send each signal a second time, and a second
 * signal exits at once. The next start removes the temporary files that they would have removed (`TEMPORARY_TOKEN`).
 */
export async function loadConf(): Promise<typeof import("conf").default> {
  const signals = Object.keys(constants.signals) as (keyof typeof constants.signals)[];
  const before = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const { default: Conf } = await import("conf");
  for (const signal of signals) {
    for (const listener of process.listeners(signal)) {
      if (before.get(signal)?.includes(listener) !== true) process.removeListener(signal, listener);
    }
  }
  return Conf;
}
