/** Which route decides, however senders spell names, subjects and addresses. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesGlob } from "../../../src/base/normal-form.ts";
import {
  ROUTE_ACTIONS,
  type Route,
  type RouteAction,
  type RouteConditions,
  type Routing,
} from "../../../src/model/mailbox.ts";
import { safeNames } from "../../../src/model/names.ts";
import {
  compareRoutes,
  decideRoute,
  factsOf,
  fingerprintOf,
  type RouteFacts,
} from "../../../src/model/route.ts";

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
        recipient: optional(patterns),
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
const addresses = optional(fc.array(word, { maxLength: 2 }));
const recipients = fc.record({ to: addresses, cc: addresses, more: optional(fc.constant(1)) });
const opened = fc.record({ sender: word, subject: word, recipients, files });
type Opened = typeof opened extends fc.Arbitrary<infer Value> ? Value : never;

/** As the configuration page says it: every condition that is set has to be met. `undefined`: nobody can say. */
function meets({ when }: Route, { sender, subject, recipients: sentTo, files: all }: Opened) {
  const fits = (text: string, globs: readonly string[] | undefined) =>
    globs === undefined || globs.some((glob) => matchesGlob(text.toLowerCase(), glob.toLowerCase()));
  const bytes = all.reduce((sum, file) => sum + file.bytes, 0);
  const { to, cc, more } = sentTo;
  const isOther =
    fits(sender, when.sender) &&
    fits(subject, when.subject) &&
    (when.file === undefined || all.some(({ name }) => fits(name, when.file))) &&
    bytes >= (when.minBytes ?? 0) &&
    bytes <= (when.maxBytes ?? Number.POSITIVE_INFINITY);
  if (!isOther || when.recipient === undefined) return isOther;
  const isNamed = [...(to ?? []), ...(cc ?? [])].some((address) => fits(address, when.recipient));
  const isEveryone = to !== undefined && cc !== undefined && more === undefined;
  return isNamed || (isEveryone ? false : undefined);
}

test("routes of an opened transfer: the first that it meets decides, else what applies otherwise", async () => {
  await fc.assert(
    fc.asyncProperty(routing, opened, async (given, transfer) => {
      const first = given.routes.find((route) => meets(route, transfer) !== false);
      const decision = await decideRoute(given, factsOf(transfer, transfer.files));
      const isDoubtful = first !== undefined && meets(first, transfer) === undefined;
      expect(decision?.route).toBe(isDoubtful ? undefined : first);
      expect(decision?.doubt).toBe(isDoubtful ? first?.name : undefined);
      expect(decision?.action).toBe(isDoubtful ? "hold" : (first?.action ?? given.otherwise));
      expect(decision?.why).not.toBe("");
    }),
    { numRuns: 2_000 },
  );
});

test("routes decide before the transfer is open only what no file, size or subject can change", async () => {
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

test("routes say why, with text of the sender cut and quoted", async () => {
  const route: Route = { name: "r", action: "hold", when: { subject: ["*"], minBytes: 5 } };
  const facts = factsOf({ sender: "a@b", subject: "x\n".repeat(500) }, []);
  const [compared] = await compareRoutes([route], facts);
  const texts = compared?.conditions.map(({ text }) => text) ?? [];
  expect(texts[0]).toMatch(/^the subject "x\\n.{0,200}…" matches \*$/);
  expect(texts[1]).toBe("its 0 bytes are not at least 5");
});

test("routes have a fingerprint that changes with names, conditions, actions and their order", () => {
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
  const prints = [base, ...others].map((each) => fingerprintOf(each, "none", {}));
  expect(new Set(prints).size).toBe(prints.length);
  // The layout does not decide whether a transfer is held.
  expect(fingerprintOf({ ...base, routes: [{ ...one, layout: "x/{trackingId}" }, two] }, "none", {})).toBe(
    prints[0],
  );
  // Nor do recipients, unless a route names some.
  const known = { recipients: { to: ["a"], cc: [] } };
  expect(fingerprintOf(base, "none", known)).toBe(prints[0]);
  const named = { ...base, routes: [{ ...one, when: { recipient: ["a"] } }, two] };
  expect(fingerprintOf(named, "none", known)).not.toBe(fingerprintOf(named, "none", {}));
});

const INVISIBLE = Array.from({ length: 0x110000 }, (_, code) => code)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))
  .filter((character) => /[\p{Default_Ignorable_Code_Point}\p{Cf}]|(?!\s)\p{Cc}/u.test(character));

/** Half a character. */
const HALF = "\ud800";

function facts({
  sender = "anna@supplier.example",
  subject = "",
  fileNames = [] as readonly string[],
}): RouteFacts {
  return { sender, subject, recipients: { to: [], cc: [] }, fileNames, bytes: 0 };
}

async function actionFor(action: RouteAction, when: RouteConditions, given: RouteFacts) {
  const otherwise = action === "deliver" ? "hold" : "deliver";
  return (await decideRoute({ routes: [{ name: "r", action, when }], otherwise }, given))?.action;
}

const EXE = { file: ["*.exe"] };

/** By condition: the pattern of a route, texts that it matches, and texts that it does not. */
const SPELLINGS = {
  file: {
    pattern: "*.exe",
    right: [
      ...["evil.exe. .", " evil .exe\u00a0", "evil.e\u200bxe", "evil．ＥＸＥ"],
      ...["evil.\u202eexe\u202c", "evil.ⓔxe"],
    ],
    wrong: ["evil.exe.txt", "evil-exe", "evil.e_xe", "evil.éxe", "exe"],
  },
  sender: {
    pattern: "*@evil.example",
    right: [
      ...["BO@EVIL.EXAMPLE.", " bo@ evil .example\u00a0", "bo＠ｅｖｉｌ。example"],
      "bo@ev\u200bil.example\u0000",
    ],
    wrong: ["bo@evil.example.org", "bo@evilexample", "bo@evil-example", "evil.example"],
  },
  subject: {
    pattern: "*Urgent order*",
    right: ["Re: URGENT  order 4", "urgent\r\n order", "ur\u200bgent o\u00adrder", "ｕｒｇｅｎｔ　𝑜𝑟𝑑𝑒𝑟"],
    wrong: ["urgentorder", "urgent-order", "order urgent", ""],
  },
} as const;

const spelled = (key: keyof typeof SPELLINGS, text: string) =>
  facts(key === "file" ? { fileNames: [text] } : { [key]: text });

describe.each(Object.keys(SPELLINGS) as (keyof typeof SPELLINGS)[])("a route by %s", (key) => {
  const { pattern, right, wrong } = SPELLINGS[key];

  test.each(right)("matches %j", async (text) => {
    for (const action of ["hold", "deliver"] as const)
      expect(await actionFor(action, { [key]: [pattern] }, spelled(key, text))).toBe(action);
  });

  test.each(wrong)("does not match %j", async (text) => {
    expect(await actionFor("hold", { [key]: [pattern] }, spelled(key, text))).toBe("deliver");
    expect(await actionFor("deliver", { [key]: [pattern] }, spelled(key, text))).toBe("hold");
  });
});

test("a route for files catches each name that is delivered as a program, by the name as sent alone and with the delivered one", async () => {
  const unit = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.constantFrom(..."..eExXaA /\\:-_~\u00a0\u3000\t\nｅｘ．․…é", HALF, "exe", ".exe"),
    },
    { weight: 2, arbitrary: fc.constantFrom(...INVISIBLE) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 2 }) },
  );
  const ending = fc.constantFrom("", ".", " ", ". .", "\u200b", "\ufe0f.", "\u00ad \u200b");
  const name = fc
    .tuple(
      fc.string({ unit, maxLength: 12 }),
      fc.constantFrom("", ".exe", ".E\u200bxE", ".ex\ufeffe"),
      ending,
    )
    .map((parts) => parts.join(""));
  let programs = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 3 }), async (names) => {
      const files = names.map((each, at) => ({ id: String(at), name: each }));
      for (const [id, delivered] of await safeNames(files, ["transfer.json"])) {
        if (!/\.exe$/i.test(delivered)) continue;
        const sent = names[Number(id)] ?? "";
        expect(await actionFor("hold", EXE, facts({ fileNames: [sent] }))).toBe("hold");
        expect(await actionFor("hold", EXE, facts({ fileNames: [sent, delivered] }))).toBe("hold");
        if (sent !== delivered) programs++;
      }
    }),
    { numRuns: 2_000 },
  );
  expect(programs).toBeGreaterThan(500);
});

test.each([
  ["sender", { sender: ["*"] }, facts({ sender: `anna${HALF}@supplier.example` })],
  ["subject", { subject: ["*"] }, facts({ subject: HALF })],
  ["file", { file: ["*"] }, facts({ fileNames: [`a${HALF}.xml`] })],
] as const)(
  "the decision about a %s with half a character: no route delivers it, and every route may hold it",
  async (key, when, given) => {
    expect(await actionFor("deliver", when, given)).toBe("hold");
    const [trusting] = await compareRoutes([{ name: "r", action: "deliver", when }], given);
    expect(trusting?.conditions[0]?.text).toMatch(/ is not valid text, so it does not match \*$/);
    for (const action of ["hold", "ignore"] as const) {
      const route: Route = { name: "r", action, when: { [key]: ["nothing like it"] } };
      const [compared] = await compareRoutes([route], given);
      expect(compared?.match).toBe("yes");
      expect(compared?.conditions[0]?.text).toMatch(
        /^the \w+ ".*\\ud800.*" is not valid text, and may mean nothing like it$/,
      );
    }
  },
);

test("the decision about half a character leaves other files to a route that delivers, and still needs the other conditions", async () => {
  const deliver = (...fileNames: string[]) => actionFor("deliver", { file: ["*.xml"] }, facts({ fileNames }));
  expect(await deliver(HALF, "a.xml")).toBe("deliver");
  expect(await deliver(`${HALF}.xml`, "a.pdf")).toBe("hold");
  const when = { subject: ["x"], sender: ["*@evil.example"] };
  expect(await actionFor("hold", when, facts({ subject: HALF }))).toBe("deliver");
  expect(await actionFor("hold", when, facts({ subject: HALF, sender: "bo@evil.example" }))).toBe("hold");
});
