import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { generateDocs } from "../../support/generated-docs.ts";

test.each(Object.entries(await generateDocs()))(
  "%s says what the code says (npm run docs writes it)",
  (path, content) => {
    expect(readFileSync(resolve(import.meta.dirname, "../../..", path), "utf8")).toBe(content);
  },
);
