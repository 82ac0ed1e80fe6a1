import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { Secret, scrub } from "../../../src/base/secret.ts";

describe("a secret", () => {
  test("does not show itself in text, JSON, inspection or as a property", () => {
    const secret = new Secret("hunter2");
    const shown = [`${secret}`, JSON.stringify({ secret }), inspect({ secret }, { depth: 9 })];
    expect(shown.join()).not.toContain("hunter2");
    expect(Object.keys(secret)).toEqual([]);
    expect(secret.reveal()).toBe("hunter2");
  });

  test("is scrubbed from other people's text, also where it stands encoded or blank-padded", () => {
    const secrets = [new Secret("pä ss"), new Secret(""), new Secret(" padded ")];
    expect(scrub(`got p${"ä"} ss and ${encodeURIComponent("pä ss")} and padded`, secrets)).toBe(
      "got [secret] and [secret] and [secret]",
    );
  });

  test("is scrubbed whole where one is part of another", () => {
    expect(scrub("abcdef", [new Secret("abc"), new Secret("abcdef")])).toBe("[secret]");
  });

  test.each(["HUNTER+two", "hunter%2btwo", "h%75nter+two", "hunter&#43;two", "hunter&#x2B;two"])(
    "takes the whole text with it where it shows through another spelling: %s",
    (spelling) => {
      expect(scrub(`it was ${spelling}`, [new Secret("hunter+two")])).toBe("[secret]");
    },
  );

  test("leaves other text alone", () => {
    expect(scrub("The service is closed: 100% of it", [new Secret("hunter2"), new Secret("x")])).toBe(
      "The service is closed: 100% of it",
    );
  });
});
