/** I5 no escape: a stored placement that is damaged or forged leads to no path outside of its folders. */
import { posix } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  contentOf,
  makePlacement,
  type Part,
  parsePlacement,
  partsOf,
  pathOf,
} from "../../../src/model/placement.ts";

const FILE: Part = { from: "file", name: "a", as: "t1_a", identity: "1" };
const PLACEMENT = makePlacement(
  { deliver: "files", parent: "m/flat", manifest: "t1_transfer.json" },
  {
    before: [],
    content: [FILE],
    after: [[{ from: "beside", name: "transfer.json", as: "t1_transfer.json", identity: "2" }]],
  },
);

/** Names and paths, many of which lead out of a folder. */
const word = fc.oneof(
  fc.constantFrom("..", ".", "", "/", "\0", "a", "..a", "a..", "\\", "é"),
  fc.string({ maxLength: 3 }),
);
const text = fc
  .array(word, { maxLength: 4 })
  .chain((words) => fc.constantFrom(words.join("/"), words.join("")));

test.each(["m/flat", "m", ""])("a placement in %j is read as it was written", (parent) => {
  const placement = { ...PLACEMENT, parent };
  expect(parsePlacement(JSON.stringify(placement))).toEqual(placement);
  expect([contentOf(placement), partsOf(placement).length]).toEqual([[FILE], 2]);
});

test("every path of a placement that is read stays below its folder", () => {
  let read = 0;
  fc.assert(
    fc.property(
      fc.record({ parent: text, manifest: text, name: text, as: text }, { requiredKeys: [] }),
      ({ parent = "m", manifest = "x", name = "a", as = "a" }) => {
        const phases = [[{ ...FILE, name, as }]];
        const placement = parsePlacement(JSON.stringify({ ...PLACEMENT, parent, manifest, phases }));
        if (placement === undefined) return;
        read++;
        const paths = [parent, pathOf(placement, manifest), pathOf(placement, as), name];
        for (const path of paths.filter((it) => it !== "")) {
          expect(path).not.toContain("\0");
          expect(posix.isAbsolute(path)).toBe(false);
          // Nothing in it is left out or resolved.
          expect(posix.join("/inbox", path)).toBe(`/inbox/${path}`);
        }
        expect([name, as, manifest].join("")).not.toContain("/");
        expect(name).not.toBe("");
      },
    ),
    { numRuns: 3_000 },
  );
  expect(read).toBeGreaterThan(100);
});

test.each([
  ["manifest", ""],
  ["content", 2],
  ["content", -1],
  ["content", 0.5],
  ["version", 2],
])("%s %j is refused", (key, value) => {
  expect(parsePlacement(JSON.stringify({ ...PLACEMENT, [key]: value }))).toBeUndefined();
});
