/** Language packs and their files. */
import { describe, expect, test } from "vitest";
import { ask, errorOf, jsonOf, simulate } from "./client.ts";

const PACKS = "/api/products/api.rest/language-packs";

describe("language packs", () => {
  test("are listed, all or of one major version", async () => {
    const simulator = await simulate();
    const ids = async (query = {}) =>
      jsonOf(await ask(simulator, PACKS, { query })).data.map((pack: { id: string }) => pack.id);
    expect(await ids()).toEqual(["en-US_2", "de-DE_2", "en-US_3", "de-DE_3"]);
    expect(await ids({ "major-version": "3" })).toEqual(["en-US_3", "de-DE_3"]);
    expect(await ids({ "major-version": "9" })).toEqual([]);
    expect(errorOf(await ask(simulator, PACKS, { query: { "major-version": "x" } }))).toBe("400/1004");
  });

  test("are shown one by one", async () => {
    const simulator = await simulate();
    expect(jsonOf(await ask(simulator, `${PACKS}/de-DE_2`)).data).toEqual({
      id: "de-DE_2",
      displayName: "Deutsch (Deutschland)",
      locale: "de-DE",
      version: "2.1",
      lastChangeTimestamp: "2025-03-04T09:30:00+00:00",
      href: "/api/products/api.rest/language-packs/de-DE_2",
    });
    expect(jsonOf(await ask(simulator, `${PACKS}/de-DE_3`)).data.lastChangeTimestamp).toBeNull();
    expect(errorOf(await ask(simulator, `${PACKS}/xx-XX_1`))).toBe("404/2003");
    expect(errorOf(await ask(simulator, PACKS.replace("api.rest", "api.soap")))).toBe("404/2003");
  });

  test("have files under names without the language", async () => {
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
});
