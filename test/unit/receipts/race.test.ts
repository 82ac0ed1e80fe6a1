import { readFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";
import { openReceipts } from "../../../src/receipts/files.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

vi.mock("node:fs/promises", async (importOriginal) => {
  const original = await importOriginal<typeof import("node:fs/promises")>();
  return { ...original, readFile: vi.fn(original.readFile) };
});

test("I2 once: one that becomes final between the two places where it is looked for is not taken for new", async () => {
  const receipts = await openReceipts(await makeFolder(), { alone: true });
  const discovered = makeReceipt();
  const gone = makeReceipt({ state: "gone" });
  await receipts.create(discovered, undefined);
  const read = vi.mocked(readFile).getMockImplementation();
  vi.mocked(readFile).mockImplementationOnce(async (...args) => {
    const settled = receipts.put(gone, discovered);
    try {
      return (await read?.(...args)) ?? "";
    } finally {
      await settled;
    }
  });
  expect(await receipts.find(discovered)).toBeDefined();
});
