/** Which version of the program this is. */
import { readFileSync } from "node:fs";

/** The same distance from here in src and in dist. */
export function readVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}
