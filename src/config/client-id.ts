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

const FORM = /^[A-Za-z0-9]{50,4000}$/;

export async function keepClientId(state: string): Promise<OwnClientId> {
  const path = join(state, "client-id");
  const kept = await readFile(path, "utf8").then(
    (text) => text.trim(),
    () => "",
  );
  if (FORM.test(kept)) return { clientId: new Secret(kept), path, made: false };
  const clientId = randomBytes(40).toString("hex");
  await replaceDurably(path, `${clientId}\n`, 0o600);
  return { clientId: new Secret(clientId), path, made: true };
}
