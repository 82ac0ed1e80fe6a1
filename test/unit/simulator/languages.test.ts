/** Language packs and their files. */
import { expect, test } from "vitest";
import { ask, simulate } from "./client.ts";

const PACKS = "/api/products/api.rest/language-packs";

test("language packs have files under names without the language", async () => {
  const files = { "messages_de.properties": "a", "help_de_DE.html": "b", "terms-de-DE.txt": "c" };
  const others = { "model_delta.txt": "d", README: "e", "sub/notes_de.txt": "f" };
  const pack = { locale: "de-DE", displayName: "Deutsch", version: "1.0", files: { ...files, ...others } };
  const simulator = await simulate({ languagePacks: [pack] });
  const get = (name: string) => ask(simulator, `${PACKS}/de-DE_1/${name}`);
  const names = "messages.properties help.html terms.txt model_delta.txt README sub/notes.txt".split(" ");
  const texts = await Promise.all(names.map(async (name) => (await get(name)).text));
  expect(texts.join("")).toBe("abcdef");
  for (const name of ["messages_de.properties", "..%2f..%2fpackage.json", "%2e%2e/%2e%2e/x", "__proto__"]) {
    expect((await get(name)).status).toBe(404);
  }
});
