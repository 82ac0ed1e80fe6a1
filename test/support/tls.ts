/** Keys and certificates for tests of TLS: an authority, a server for 127.0.0.1 and localhost, a client. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

export const FOLDER = resolve(import.meta.dirname, "../fixtures/tls");

export const CA = read("ca.crt");
export const SERVER = { cert: read("server.crt"), key: read("server.key") };
export const CLIENT = { cert: read("client.crt"), key: read("client.key") };

function read(name: string): string {
  return readFileSync(resolve(FOLDER, name), "utf8");
}
