/** Which fields a poll requests of a service that refuses some of them. */
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { ListFields, WANTED_FIELDS } from "../../../src/mailbox/list-fields.ts";

const PARTS = {
  subject: "notificationMessage",
  message: "confidentialMessageFileId",
  named: "securityMode(name",
  recipients: "recipients(to,cc)",
  expiry: "expirationDate",
  mode: "securityMode",
};
type Part = keyof typeof PARTS;

/** Polls a service that refuses these parts: how many requests it refused, and what the last poll was answered. */
async function poll(
  fields: ListFields,
  refused: readonly Part[],
  answeredBy: "service" | "intermediary" = "service",
) {
  let count = 0;
  const answered = await fields.read(async (wanted) => {
    if (!refused.some((part) => wanted.includes(PARTS[part]))) return wanted;
    count++;
    throw new Fault("BAD_REQUEST", { answeredBy });
  });
  return { count, answered };
}

const everyPart = Object.keys(PARTS) as Part[];
const subsets = Array.from({ length: 2 ** everyPart.length }, (_, bits) =>
  everyPart.filter((_part, at) => (bits >> at) & 1),
);

test.each(subsets)(
  "after some polls it is asked for all but what it refuses: %s",
  async (...refused: Part[]) => {
    const fields = new ListFields();
    for (let polls = 0; polls < 8; polls++) await poll(fields, refused);
    const { count, answered } = await poll(fields, refused);
    expect(count).toBe(0);
    // Without the mode, there is no more of it.
    const isRefused = (part: Part) =>
      refused.includes(part) || (part === "named" && refused.includes("mode"));
    for (const part of everyPart)
      expect([part, answered.includes(PARTS[part])]).toEqual([part, !isRefused(part)]);
  },
);

test("a single refusal does not make it ask for less at the next poll", async () => {
  const fields = new ListFields();
  expect((await poll(fields, ["subject"])).answered).not.toContain(PARTS.subject);
  expect((await poll(fields, [])).answered).toBe(WANTED_FIELDS);
});

test("the mode is the last that it asks for, and what a proxy refuses is not left out", async () => {
  const asked: string[] = [];
  await new ListFields().read(async (wanted) => {
    asked.push(wanted);
    if (wanted.includes("transfer(")) throw new Fault("BAD_REQUEST", { answeredBy: "service" });
  });
  expect(asked.at(-2)).toBe("trackingId,status(sender(email),recipients,state),transfer(securityMode)");
  await expect(poll(new ListFields(), ["subject"], "intermediary")).rejects.toThrow();
});
