import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { formatFields, moreOf, parseFields } from "../../../src/service/fields.ts";
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

describe("fields that the model does not have", () => {
  const entry = {
    trackingId: "A1B2-C3D4",
    status: { state: "ACTIVE", recipients: [{ downloadUrl: "https://x.example/?password=y" }], retries: 2 },
    transfer: {
      recipients: { to: [], bcc: ["b@x.example"] },
      expirationDate: "",
      webLink: "https://x.example",
    },
    later: { size: 5, accessToken: "z" },
  };

  test("are those of the selection", () => {
    expect(moreOf(entry, parseFields("status(retries),transfer(recipients(to))"))).toEqual({
      status: { retries: 2 },
    });
  });

  test("are all that were sent, without links and secrets, if nothing was selected", () => {
    expect(moreOf(entry, undefined)).toEqual({
      status: { retries: 2 },
      transfer: { recipients: { bcc: ["b@x.example"] } },
      later: { size: 5 },
    });
    expect(moreOf({ trackingId: "A1B2-C3D4", status: { state: "ACTIVE" } }, undefined)).toBeUndefined();
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
