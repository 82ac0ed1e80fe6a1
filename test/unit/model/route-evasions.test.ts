/** Senders choose names, subjects and addresses: however they spell them, they do not slip past a route. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Route, RouteAction, RouteConditions } from "../../../src/model/mailbox.ts";
import { safeNames } from "../../../src/model/names.ts";
import { compareWith, decideRoute, type RouteFacts } from "../../../src/model/route.ts";

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
  return { sender, subject, fileNames, bytes: 0 };
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

const factsOf = (key: keyof typeof SPELLINGS, text: string) =>
  facts(key === "file" ? { fileNames: [text] } : { [key]: text });

describe.each(Object.keys(SPELLINGS) as (keyof typeof SPELLINGS)[])("a route by %s", (key) => {
  const { pattern, right, wrong } = SPELLINGS[key];

  test.each(right)("matches %j", async (text) => {
    for (const action of ["hold", "deliver"] as const)
      expect(await actionFor(action, { [key]: [pattern] }, factsOf(key, text))).toBe(action);
  });

  test.each(wrong)("does not match %j", async (text) => {
    expect(await actionFor("hold", { [key]: [pattern] }, factsOf(key, text))).toBe("deliver");
    expect(await actionFor("deliver", { [key]: [pattern] }, factsOf(key, text))).toBe("hold");
  });
});

describe("a route for files", () => {
  test("catches each name that is delivered as a program, by the name as sent alone and with the delivered one", async () => {
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
});

describe("the decision", () => {
  test.each([
    ["sender", { sender: ["*"] }, facts({ sender: `anna${HALF}@supplier.example` })],
    ["subject", { subject: ["*"] }, facts({ subject: HALF })],
    ["file", { file: ["*"] }, facts({ fileNames: [`a${HALF}.xml`] })],
  ] as const)(
    "about a %s with half a character: no route delivers it, and every route may hold it",
    async (key, when, given) => {
      expect(await actionFor("deliver", when, given)).toBe("hold");
      const trusting = await compareWith({ name: "r", action: "deliver", when }, given);
      expect(trusting.conditions[0]?.text).toMatch(/ is not valid text, so it does not match \*$/);
      for (const action of ["hold", "ignore"] as const) {
        const route: Route = { name: "r", action, when: { [key]: ["nothing like it"] } };
        const { match, conditions } = await compareWith(route, given);
        expect(match).toBe("yes");
        expect(conditions[0]?.text).toMatch(
          /^the \w+ ".*\\ud800.*" is not valid text, and may mean nothing like it$/,
        );
      }
    },
  );

  test("about half a character in one file leaves the other files to a route that delivers", async () => {
    const deliver = (...fileNames: string[]) =>
      actionFor("deliver", { file: ["*.xml"] }, facts({ fileNames }));
    expect(await deliver(HALF, "a.xml")).toBe("deliver");
    expect(await deliver(`${HALF}.xml`, "a.pdf")).toBe("hold");
  });

  test("about half a character still needs the other conditions", async () => {
    const when = { subject: ["x"], sender: ["*@evil.example"] };
    expect(await actionFor("hold", when, facts({ subject: HALF }))).toBe("deliver");
    expect(await actionFor("hold", when, facts({ subject: HALF, sender: "bo@evil.example" }))).toBe("hold");
  });
});
