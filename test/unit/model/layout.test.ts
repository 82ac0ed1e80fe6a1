import { resolve } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { formatLayout, type LayoutValues } from "../../../src/model/names.ts";

const VALUES: LayoutValues = {
  mailbox: "orders@example.com",
  sender: "Jane.Doe@Supplier.Example",
  trackingId: "TRK-1",
  transferId: "0f9e",
  subject: "October",
  discovered: new Date("2025-03-04T23:59:59-01:00"),
};

/** A path in a value leads nowhere. */
const HELD = expect.stringMatching(/^__\.\._\.\._etc~[0-9a-f]{8}\/_~[0-9a-f]{8}$/);

test.each<[string, unknown, Partial<LayoutValues>?]>([
  ["{mailbox}/{sender}/{trackingId}", "orders@example.com/Jane.Doe@Supplier.Example/TRK-1"],
  ["{senderDomain}/{transferId}", "supplier.example/0f9e"],
  ["{senderDomain}", "c.example", { sender: '"a@b"@C.Example' }],
  ["{year}/{month}/{day}/{trackingId}", "2025/03/05/TRK-1"],
  ["in {year}-{month}-{day}, {subject}!/x", "in 2025-03-05, October!/x"],
  ["fixed", "fixed"],
  ["{senderDomain}/{subject}/a{transferId}b", "_/_/a_b", { sender: "", subject: " ", transferId: "" }],
  // A value that looks like a placeholder stays what it is.
  ["{subject}", "{trackingId}", { subject: "{trackingId}" }],
  ["{subject}/{trackingId}", HELD, { subject: "../../../etc", trackingId: ".." }],
])("a layout is filled in %s → %s", (layout, path, values) => {
  expect(formatLayout(layout, { ...VALUES, ...values })).toEqual(path);
});

test("hostile values never add or remove a folder, never leave the inbox, never hide, never read as an option", () => {
  const hostile = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom(..."/\\ \0\u200b\u202e@-a\ud800", "..", ".", "", "CON", "{day}"))
      .map((parts) => parts.join("")),
    fc.constantFrom("/", "日".repeat(400), "a@".repeat(200)),
  );
  const values = fc.record({
    mailbox: hostile,
    sender: hostile,
    trackingId: hostile,
    transferId: hostile,
    subject: hostile,
    discovered: fc.date({ noInvalidDate: true }),
  });
  const part = fc.constantFrom(
    ...["{mailbox}", "{sender}", "{senderDomain}", "{trackingId}", "{transferId}", "{subject}"],
    ...["{year}", "{month}", "{day}", ".", "..", "-", " ", "x"],
  );
  const segment = fc
    .array(part, { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join(""))
    .filter((text) => !["", ".", ".."].includes(text.trim()));
  const layouts = fc.array(segment, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(layouts, values, (segments, filling) => {
      const path = formatLayout(segments.join("/"), filling);
      expect(resolve("/srv/inbox", path)).toBe(`/srv/inbox/${path}`);
      expect(path.split("/").length).toBe(segments.length);
      for (const name of path.split("/")) {
        expect(name).not.toMatch(/^[-.]|^$/);
        expect(Buffer.byteLength(name)).toBeLessThanOrEqual(240);
      }
    }),
    { numRuns: 3_000 },
  );
});
