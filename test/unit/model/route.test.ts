import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesGlob } from "../../../src/base/glob.ts";
import { ROUTE_ACTIONS, type Route, type Routing } from "../../../src/model/mailbox.ts";
import { compareWith, decideRoute, factsOf, fingerprintOf } from "../../../src/model/route.ts";

const word = fc.stringMatching(/^[abAB]{0,3}$/);
const pattern = fc.stringMatching(/^[abAB*?]{1,3}$/);
const patterns = fc.array(pattern, { minLength: 1, maxLength: 2 });
const size = fc.integer({ min: 0, max: 9 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const routes: fc.Arbitrary<Route[]> = fc
  .array(
    fc.record({
      action: fc.constantFrom(...ROUTE_ACTIONS),
      when: fc.record({
        sender: optional(patterns),
        subject: optional(patterns),
        file: optional(patterns),
        minBytes: optional(size),
        maxBytes: optional(size),
      }),
    }),
    { maxLength: 4 },
  )
  .map((all) => all.map((each, at) => ({ ...each, name: `routes[${at}]` })));
const routing: fc.Arbitrary<Routing> = fc.record({ routes, otherwise: fc.constantFrom(...ROUTE_ACTIONS) });
const files = fc.array(fc.record({ name: word, bytes: size }), { maxLength: 3 });
const opened = fc.record({ sender: word, subject: word, files });
type Opened = typeof opened extends fc.Arbitrary<infer Value> ? Value : never;

/** As the configuration page says it: every condition that is set has to be met. */
function meets({ when }: Route, { sender, subject, files: all }: Opened): boolean {
  const fits = (text: string, globs: readonly string[] | undefined) =>
    globs === undefined || globs.some((glob) => matchesGlob(text.toLowerCase(), glob.toLowerCase()));
  const bytes = all.reduce((sum, file) => sum + file.bytes, 0);
  return (
    fits(sender, when.sender) &&
    fits(subject, when.subject) &&
    (when.file === undefined || all.some(({ name }) => fits(name, when.file))) &&
    bytes >= (when.minBytes ?? 0) &&
    bytes <= (when.maxBytes ?? Number.POSITIVE_INFINITY)
  );
}

describe("routes", () => {
  test("of an opened transfer: the first that it meets decides, else what applies otherwise", async () => {
    await fc.assert(
      fc.asyncProperty(routing, opened, async (given, transfer) => {
        const first = given.routes.find((route) => meets(route, transfer));
        const decision = await decideRoute(given, factsOf(transfer, transfer.files));
        expect(decision?.route).toBe(first);
        expect(decision?.action).toBe(first?.action ?? given.otherwise);
        expect(decision?.why).not.toBe("");
      }),
      { numRuns: 2_000 },
    );
  });

  test("decide before the transfer is open only what no file, size or subject can change", async () => {
    await fc.assert(
      fc.asyncProperty(routing, opened, fc.boolean(), async (given, transfer, hasSubject) => {
        const late = factsOf(transfer, transfer.files);
        const subject = hasSubject ? transfer.subject : undefined;
        const early = await decideRoute(given, { ...late, subject, fileNames: undefined, bytes: undefined });
        if (early !== undefined) expect(await decideRoute(given, late)).toEqual(early);
        // A route that needs nothing more is never left open.
        const isListed = ({ when }: Route) =>
          when.file === undefined && when.minBytes === undefined && when.maxBytes === undefined;
        if (hasSubject && given.routes.every(isListed)) expect(early).toBeDefined();
      }),
      { numRuns: 2_000 },
    );
  });

  test("say why, with text of the sender cut and quoted", async () => {
    const route: Route = { name: "r", action: "hold", when: { subject: ["*"], minBytes: 5 } };
    const facts = factsOf({ sender: "a@b", subject: "x\n".repeat(500) }, []);
    const texts = (await compareWith(route, facts)).conditions.map(({ text }) => text);
    expect(texts[0]).toMatch(/^the subject "x\\n.{0,200}…" matches \*$/);
    expect(texts[1]).toBe("its 0 bytes are not at least 5");
  });

  test("have a fingerprint that changes with names, conditions, actions and their order", () => {
    const one: Route = { name: "one", action: "hold", when: { sender: ["a"] } };
    const two: Route = { name: "two", action: "deliver", when: {} };
    const base: Routing = { routes: [one, two], otherwise: "deliver" };
    const others: Routing[] = [
      { ...base, otherwise: "hold" },
      { ...base, routes: [two, one] },
      { ...base, routes: [one] },
      { ...base, routes: [{ ...one, name: "x" }, two] },
      { ...base, routes: [{ ...one, action: "ignore" }, two] },
      { ...base, routes: [{ ...one, when: { sender: ["b"] } }, two] },
    ];
    const prints = [base, ...others].map((each) => fingerprintOf(each, "none"));
    expect(new Set(prints).size).toBe(prints.length);
    // The layout does not decide whether a transfer is held.
    expect(fingerprintOf({ ...base, routes: [{ ...one, layout: "x/{trackingId}" }, two] }, "none")).toBe(
      prints[0],
    );
  });
});
