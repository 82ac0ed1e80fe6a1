/** Finds the console of a running daemon whose file is no longer valid: the daemon keeps its old settings. */
import { readFile } from "node:fs/promises";
import { variableFor } from "./draft.ts";
import { HTTP, parseListen } from "./http.ts";
import { loadHttp } from "./load.ts";
import { DEFAULT_PATH, type HttpSettings } from "./settings.ts";
import { candidatesOf, type SourceOptions } from "./source.ts";

/**
 * The file that the daemon was started with, and addresses to try, the most likely first. Works for a file that is not
 * valid, or not YAML at all. Never throws.
 */
export async function findLastAddress(
  options: SourceOptions,
): Promise<{ readonly file: string; readonly addresses: readonly HttpSettings[] }> {
  const { env } = options;
  const { candidates } = candidatesOf(options);
  let [file = DEFAULT_PATH, text] = [candidates.at(-1), ""];
  // The first candidate that exists wins.
  for (const candidate of candidates.toReversed()) {
    // The daemon itself says why it cannot read its configuration.
    const found = await readFile(candidate, "utf8").catch(() => undefined);
    if (found !== undefined) [file, text] = [candidate, found];
  }
  // It also says what is not valid in it.
  const valid = await loadHttp(options).catch(() => undefined);
  const [, written] = /(?:^|[\s{,"'])listen["']?\s*:\s*["']?((?:unix:)?[^\s"',}]+)/m.exec(text) ?? [];
  const given = [env[variableFor(["http", "listen"])], written, HTTP.properties.listen.default];
  const guessed = given.flatMap((address) => (address ? (parseListen(address) ?? []) : []));
  const others = guessed.map((listen) => ({ listen, actions: false, tokens: new Map(), hosts: [] }));
  return { file, addresses: [...(valid === undefined ? [] : [valid]), ...others] };
}
