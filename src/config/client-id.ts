/** A client id of our own, for services where none was configured: made once, kept in the state folder. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceDurably } from "../base/durable.ts";
import { Secret } from "../base/secret.ts";

export interface OwnClientId {
  readonly clientId: Secret;
  readonly path: string;
  /** It did not exist before: an administrator of the service has to register it. */
  readonly made: boolean;
}

const NAME = "client-id";
const FORM = /^[A-Za-z0-9]{50,4000}$/;

export async function keepClientId(state: string): Promise<OwnClientId> {
  const path = join(state, NAME);
  const kept = await findClientId(state);
  if (kept !== undefined) return { clientId: kept, path, made: false };
  const clientId = makeClientId();
  await replaceDurably(path, `${clientId.reveal()}\n`, 0o600);
  return { clientId, path, made: true };
}

/** The one that is kept there; `undefined` where none was made yet. */
export async function findClientId(state: string): Promise<Secret | undefined> {
  const kept = await readFile(join(state, NAME), "utf8").then(
    (text) => text.trim(),
    () => "",
  );
  return FORM.test(kept) ? new Secret(kept) : undefined;
}

export function makeClientId(): Secret {
  return new Secret(randomBytes(40).toString("hex"));
}
