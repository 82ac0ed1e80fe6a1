import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { formatFields, parseFields, withoutSecrets } from "../../../src/service/fields.ts";
import { KNOWN_FIELDS } from "../../support/service.ts";

describe("the field selection", () => {
  test("formats every path of the specification", () => {
    expect(formatFields(KNOWN_FIELDS)).toBe(
      "trackingId,status(sender(email),recipients,state)," +
        "transfer(recipients(to,cc),expirationDate,securityMode(config(passwordMode))," +
        "confidentialMessageFileId,files,notificationMessage(subject,body),fileChecksumAlgorithm)",
    );
  });

  test("parses the examples of the specification", () => {
    expect(parseFields("status(state), transfer(recipients(to, cc), expirationDate)")).toEqual({
      trackingId: true,
      status: { state: true },
      transfer: { recipients: { to: true, cc: true }, expirationDate: true },
    });
    expect(parseFields("trackingId, status(sender(email), recipients, state), transfer(recipients)")).toEqual(
      {
        trackingId: true,
        status: { sender: { email: true }, recipients: true, state: true },
        transfer: { recipients: true },
      },
    );
  });

  test("parses names that only the service knows", () => {
    const expression = "trackingId,status(recipients(fileDownloads(id))),new-Part(x_1,y.z)";
    expect(formatFields(parseFields(expression))).toBe(expression);
    const inherited = "constructor(prototype),toString";
    expect(formatFields(parseFields(inherited))).toBe(`trackingId,${inherited}`);
  });

  test("is unchanged after formatting and parsing", () => {
    fc.assert(
      fc.property(selectionOf(KNOWN_FIELDS), (chosen) => {
        const selection = { trackingId: true, ...chosen } as const;
        expect(parseFields(formatFields(selection))).toEqual(selection);
      }),
    );
  });

  test.each([
    ["", "a name is missing in fields"],
    ["status(", "a name is missing in status"],
    ["status(state", '")" is missing after the parts of status'],
    ["status(state))", 'unexpected ")"'],
    ["status(st/ate)", '"st/ate" is not a name'],
    ["a(".repeat(30_000), "more than 20 names are nested"],
    ["trackingId(x)", "trackingId has no parts to choose from"],
    ["status,,transfer", "a name is missing in fields"],
    ["__proto__", '"__proto__" is not a name'],
  ])("says what is wrong with %j", (expression, problem) => {
    expect(() => parseFields(expression)).toThrow(problem);
  });

  test("turns any other text into a fault", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("status", "state", "(", ")", ",", " ", "é") }),
        (text) => {
          try {
            parseFields(text);
          } catch (error) {
            expect(error).toBeInstanceOf(Fault);
          }
        },
      ),
    );
  });
});

test("what the service sent is shown without links and secrets", () => {
  const entry = {
    status: { state: "ACTIVE", recipients: [{ id: 7, downloadUrl: "https://x.example/?password=y" }] },
    transfer: { expirationDate: "", webLink: "https://x.example" },
    later: { size: 5, accessToken: "z" },
  };
  expect(withoutSecrets(entry)).toEqual({
    status: { state: "ACTIVE", recipients: [{ id: 7 }] },
    transfer: { expirationDate: "" },
    later: { size: 5 },
  });
});

/** Any non-empty selection from a tree of fields. */
function selectionOf(tree: object): fc.Arbitrary<object> {
  const parts = Object.entries(tree).map(([name, part]) => {
    const whole: fc.Arbitrary<unknown> = fc.constant(true);
    return [name, part === true ? whole : fc.oneof(whole, selectionOf(part))] as const;
  });
  return fc
    .record(Object.fromEntries(parts), { requiredKeys: [] })
    .filter((selection) => Object.keys(selection).length > 0);
}
