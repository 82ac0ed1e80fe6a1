/** Language packs that are installed on the service. */
import type { Http } from "./http.ts";
import type { LanguagePack } from "./port.ts";
import { decodeLanguagePack, decodeLanguagePacks } from "./wire.ts";

const PACKS = ["products", "api.rest", "language-packs"];

export async function fetchLanguagePacks(
  http: Http,
  majorVersion: number | undefined,
  signal: AbortSignal,
): Promise<readonly LanguagePack[]> {
  const what = "the language packs";
  const query = majorVersion === undefined ? [] : [["major-version", String(majorVersion)] as const];
  return decodeLanguagePacks(await http.json({ what, path: PACKS, query }, signal), what);
}

export async function fetchLanguagePack(http: Http, id: string, signal: AbortSignal): Promise<LanguagePack> {
  const what = `the language pack ${id}`;
  return decodeLanguagePack(await http.json({ what, path: [...PACKS, id] }, signal), what);
}
